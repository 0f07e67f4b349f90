"""Results as somebody else may have written them: of every field that there is, and with anything in them."""

from __future__ import annotations

import dataclasses
import enum
import functools
import random
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from conrepair.application.report.result import AuditResult
from conrepair.application.report.saved import result_json

__all__ = ["KINDS", "full_document", "mutated", "with_links"]

KINDS = ("audit", "compare", "convert", "execute", "localize", "repair")
_PLAIN: dict[Any, Any] = {str: "net", int: 2, float: 0.5, bool: True, Path: Path("file"), Any: {"folder": "photos"}}
_OUT = ("..", "/", "../../outside", "/../../../outside", "outside/precious.onnx", "~", "C:\\x", "file:///etc/passwd")
_KNOWN = ("faulty", "undecided", "undeployable", "quantized", "reference", "intermediate", "net", "device", "crash")
_ODD_TEXTS = (
    "[/x]",
    "",
    ".",
    "a\0b",
    "n" * 300,
    "n" * 70_000,
    "=1+1",
    "\r\n",
    "\u202e\u2028",
    "\\",
    "CON",
    "%s{0}",
    "nan",
    *_KNOWN,
)
_ODD_NUMBERS = (0, -1, 99, 251, 2**31, 2**63, 10**30, 10**400, 0.0, -0.5, 1e308, 5e-324)
_ODD = (*_OUT, *_ODD_TEXTS, *_ODD_NUMBERS, "inf", "-inf", None, True, [], {}, [[]], {"": ""}, [None])


def filled(hint: Any) -> Any:
    """A value of a type, with something in every field."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in {typing.Union, types.UnionType}:
        return filled(next(item for item in inner if item is not type(None)))
    if origin is typing.Literal:
        return inner[0]
    if origin is tuple:
        return (filled(inner[0]),) if inner[-1] is Ellipsis else tuple(map(filled, inner))
    if origin in {frozenset, list}:
        return origin([filled(inner[0])])
    if origin is not None and issubclass(origin, Mapping):
        return {filled(inner[0]): filled(inner[1])}
    if issubclass(hint, enum.Enum):
        return next(iter(hint))
    hints = typing.get_type_hints(hint)
    fields = (field.name for field in dataclasses.fields(hint))
    return hint(**{name: 0 if name == "explaining" else filled(hints[name]) for name in fields})


@functools.cache
def _full(kind: str) -> dict[str, Any]:
    return result_json(dataclasses.replace(filled(AuditResult), kind=kind, folder=Path("/nowhere/run")))


def full_document(kind: str) -> dict[str, Any]:
    """What result.json would hold of a run of which everything is known.

    Args:
        kind: Of the run.
    """
    value: dict[str, Any] = _copied(_full(kind))
    (row,) = value["rows"]
    row |= {"model": "net", "conversion": "a+b", "reference": "net", "kind": "target", "verdict": "faulty"}
    for told in (row, row["localized"], row["repaired"]):
        told["problem"]["exit_code"] = 4
    source = _copied(row) | {"conversion": "", "kind": "reference", "verdict": None, "problem": None}
    value["rows"] = [source, row]
    value["architectures"] = []
    return value


def mutated(value: dict[str, Any], generator: random.Random, count: int) -> dict[str, Any]:
    """A document with something odd in some places.

    Args:
        value: It stays as it is.
        generator: Draws what and where.
        count: Of places.
    """
    value = _copied(value)
    for _ in range(count):
        holder, key = generator.choice(list(_places(value))) if generator.random() < 0.5 else _way(value, generator)
        if holder:
            generator.choice(_CHANGES)(holder, key, generator)
    return value


def _replace(holder: Any, key: Any, generator: random.Random) -> None:
    holder[key] = generator.choice(_ODD)


def _alike(holder: Any, key: Any, generator: random.Random) -> None:
    """Of the same type, so that it's taken for valid."""
    known = type(holder[key])
    fitting = [item for item in _ODD if type(item) is known] or list(_ODD)
    holder[key] = generator.choice(fitting)


def _more(holder: Any, key: Any, generator: random.Random) -> None:
    """The same several times, where it's a list."""
    if isinstance(holder[key], list):
        holder[key] = [_copied(item) for item in holder[key] * generator.choice((0, 2, 3, 50))]


def _drop(holder: Any, key: Any, _: random.Random) -> None:
    del holder[key]


_CHANGES: tuple[Callable[[Any, Any, random.Random], None], ...] = (
    _replace,
    _alike,
    _alike,
    _alike,
    _more,
    _more,
    _drop,
)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Everything that can be changed: what holds it, and its key or place there."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])


def _way(value: Any, generator: random.Random) -> tuple[Any, Any]:
    """One that a way from the top leads to: a field of a large value is no less often changed than one of a small."""
    holder, key = {"": value}, ""
    while isinstance(holder[key], dict | list) and holder[key] and (holder[key] is value or generator.random() < 0.8):
        holder = holder[key]
        key = generator.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    return holder, key


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def with_links(run: Path, outside: Path, generator: random.Random) -> None:
    """Put links that lead to somebody's files where a report of the full document writes.

    Args:
        run: The run's folder.
        outside: What they lead to.
        generator: Draws which.
    """
    name = generator.choice(
        ("runs", "runs/net", "models", "errors", "localization/net", "summary.txt", "layers.csv", "file")
    )
    place = run / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(outside / "precious.onnx" if "." in name or name == "file" else outside)

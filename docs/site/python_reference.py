"""The page of Python's reference, made of signatures and docstrings of what programs may import."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from collections.abc import Iterator
from typing import Any

from griffe import Docstring, DocstringSectionKind

_MODULES = ("conrepair", "conrepair.testing", "conrepair.report.saved", "conrepair.report.csv_text")
_NAMED = {
    DocstringSectionKind.parameters: ("argument", "meaning"),
    DocstringSectionKind.attributes: ("attribute", "meaning"),
}


def page() -> str:
    """Markdown."""
    parts = [
        "# Python reference\n",
        "What programs may import, made of its signatures and docstrings. [From Python](python.md) tells how to use "
        "it. All other modules may change with any release.\n",
    ]
    for name in _MODULES:
        module = importlib.import_module(name)
        parts.append(f"## `{name}`\n\n{inspect.getdoc(module)}\n")
        for public in sorted(module.__all__, key=lambda item: (item[0].isupper(), item)):
            if not public.startswith("__"):
                parts.extend(_told(public, getattr(module, public)))
    return "\n".join(parts)


def _told(name: str, value: Any) -> Iterator[str]:
    yield f"### {name}\n"
    if inspect.isclass(value):
        yield from _of_class(value)
    elif callable(value):
        yield f"```python\n{name}{_signature(value)}\n```\n"
        yield from _words(value)
    else:
        yield f"`{value!r}`\n"


def _of_class(value: type) -> Iterator[str]:
    yield from _words(value)
    rows = []
    for name, member in sorted(inspect.getmembers(value)):
        if name.startswith("_") or not _own(value, name):
            continue
        if isinstance(member, property):
            rows.append((f"`{name}`", _first(member)))
        elif inspect.isroutine(member):
            rows.append((f"`{name}{_signature(member)}`", _first(member)))
    if dataclasses.is_dataclass(value) and "Attributes:" not in (value.__doc__ or ""):
        rows += [(f"`{field.name}`", "") for field in dataclasses.fields(value) if not field.name.startswith("_")]
    if rows:
        yield from _table(("member", "meaning"), rows)


def _own(value: type, name: str) -> bool:
    """Whether a member comes from conrepair, and not from the standard library."""
    where = next(base for base in value.__mro__ if name in vars(base))
    return where.__module__.startswith("conrepair")


def _signature(value: Any) -> str:
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return "(...)"
    if len(parameters) > 8:  # the table below has them all
        parameters = [item for item in parameters if item.kind is not inspect.Parameter.KEYWORD_ONLY]
        return f"({', '.join(item.name for item in parameters)}, ...)"
    return f"({', '.join(str(item.replace(annotation=item.empty)) for item in parameters)})"


def _words(value: Any) -> Iterator[str]:
    """A docstring's text, with tables of what it lists."""
    for section in Docstring(inspect.getdoc(value) or "", lineno=1).parse("google", warnings=False):
        if section.kind is DocstringSectionKind.text:
            yield f"{section.value}\n"
        elif section.kind in _NAMED:
            yield from _table(_NAMED[section.kind], [(f"`{item.name}`", item.description) for item in section.value])
        elif section.kind is DocstringSectionKind.returns:
            yield "".join(f"Returns: {item.description or item.annotation}\n" for item in section.value)
        elif section.kind is DocstringSectionKind.raises:
            yield "".join(f"Raises `{item.annotation}`: {item.description}\n\n" for item in section.value)


def _first(value: Any) -> str:
    return (inspect.getdoc(value) or "").partition("\n\n")[0]


def _table(titles: tuple[str, str], rows: list[tuple[str, str]]) -> Iterator[str]:
    yield f"| {titles[0]} | {titles[1]} |\n|---|---|"
    for name, words in rows:
        yield f"| {name} | {' '.join(words.split())} |".replace("||", "\\|\\|")
    yield ""

"""Tolerances as people write them: `atol=1e-5,rtol=1e-3`, or of some outputs alone, `boxes:atol=0.5`."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from conrepair.ground.intake import arguments
from conrepair.ground.runtime.errors import UsageError

_KNOWN = ("rtol", "atol", "relative_l2")


def tolerances(name: str, value: Any) -> dict[str, dict[str, float]]:
    """Tolerances by what they're of: "" for all outputs, the name of an output, or a type of elements.

    Args:
        name: Of the argument.
        value: A text "[OF:]NAME=X[,NAME=X]" or several; or a mapping of mappings, {"boxes": {"atol": 0.5}}.

    Raises:
        UsageError: for what isn't one, or is given twice.
    """
    found: dict[str, dict[str, float]] = {}
    for place, key, text in _said(name, value):
        if key not in _KNOWN:
            raise UsageError(f"{name}: {key!r} is no tolerance: give {', '.join(_KNOWN)}, as in boxes:atol=0.5.")
        known = found.setdefault(place, {})
        where = f"{name} {place}:{key}" if place else f"{name} {key}"
        if key in known:
            raise UsageError(f"{where} is given twice: give it once.")
        known[key] = number_of(where, text, least=0)
    return found


def _said(name: str, value: Any) -> Iterator[tuple[str, str, Any]]:
    """What it's of, the tolerance's name, and the number as it's given."""
    if isinstance(value, Mapping):
        for place, known in value.items():
            if not isinstance(known, Mapping):
                raise arguments.refused(f"{name}[{place!r}]", known, "a dict, as in {'atol': 0.5}")
            yield from ((arguments.text(f"a key of {name}", place), key, number) for key, number in known.items())
        return
    for text in [value] if isinstance(value, str) else arguments.NAMES(name, value):
        place, _, rest = text.rpartition(":")  # outputs of TensorFlow have colons in their names
        for item in rest.split(","):
            key, _, number = item.partition("=")
            yield place, key.strip(), number


def max_drops(name: str, value: Any) -> dict[str, float]:
    """Shares by which accuracies may fall, by "top1", "top5" and the like.

    Args:
        name: Of the argument.
        value: A text "topK:SHARE" (0.5%, or 0.005) or several; or a mapping, {"top1": 0.005}.

    Raises:
        UsageError: for what is none.
    """
    texts = [value] if isinstance(value, str) else value
    parts = (
        value.items()
        if isinstance(value, Mapping)
        else (text.rpartition(":")[::2] for text in arguments.NAMES(name, texts))
    )
    found = {}
    for key, given in parts:
        if not re.fullmatch(r"top[1-9]\d{0,3}", str(key)):
            raise UsageError(f"{name}: {key!r} is no accuracy: write top1:0.5%, or top5:1%.")
        share = number_of(f"{name} {key}", given.removesuffix("%") if isinstance(given, str) else given, least=0)
        found[key] = arguments.real(0, 1)(f"{name} {key}", share / 100 if str(given).endswith("%") else share)
    return found


def number_of(name: str, value: Any, *, least: float = -math.inf) -> float:
    """A number, or a text that says one.

    Raises:
        UsageError: if it's none that is finite and large enough.
    """
    with contextlib.suppress(ValueError):
        value = float(value) if isinstance(value, str) else value
    found: float = arguments.real(least)(name, value)
    return found

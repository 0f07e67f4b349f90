"""Metrics of a user's own as people write them: `checks.py:iou,min=0.9,output=boxes`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conrepair.application.verbs.tolerances import number_of
from conrepair.ground.intake import arguments
from conrepair.ground.runtime.errors import UsageError

_PARTS = ("function", "min", "max", "output")


def metrics(name: str, value: Any) -> tuple[dict[str, Any], ...]:
    """The parts of metrics: `function` (or its name), `min`, `max`, `output`.

    Args:
        name: Of the argument.
        value: A function, a text "FUNCTION[,min=X][,max=X][,output=NAME]", a mapping of parts, or several of these.

    Raises:
        UsageError: for what is none.
    """
    alone = isinstance(value, str | Mapping) or callable(value)
    return tuple(_parts(name, item) for item in ([value] if alone else arguments.MODELS(name, value)))


def _parts(name: str, item: Any) -> dict[str, Any]:
    parts = dict(item) if isinstance(item, Mapping) else {"function": item}
    if isinstance(item, str):
        named, *more = item.split(",")
        parts = {"function": named, **dict(part.partition("=")[::2] for part in more)}
    for key, value in parts.items():
        if key not in _PARTS:
            raise UsageError(f"{name}: {key!r} is no part of a metric: give {', '.join(_PARTS)}.")
        if key in {"min", "max"}:
            parts[key] = number_of(f"{name} {key}", value)
    function = parts.get("function")
    if not (callable(function) or (isinstance(function, str) and function.rpartition(":")[2].isidentifier())):
        raise arguments.refused(name, function, "a function, or its name: FILE.py:FUNCTION or MODULE:FUNCTION")
    return parts

"""Facts of an operator's setting by which a target may refuse it: types, axes, sorts of values."""

from __future__ import annotations

from typing import Any

from conrepair_lab.generate.settings.setting import Setting
from conrepair_lab.generate.settings.tensors import value_in

Fact = tuple[str, str, Any]
"""One of `KINDS`, a name there, and the value."""

KINDS = ("types", "ranks", "values")
"""Element types by type variable; numbers of axes by input, of a list the most, of constants none; sorts of values by
attribute, and by input that is constant or optional."""

WEIGHTS = "weights"
"""Among values: whether the model has weights, where it may."""

_LEFT_OUT = "left out"
_LARGE = 4


def facts_of(setting: Setting, weights: bool | None = None) -> tuple[Fact, ...]:
    """The facts of a setting.

    Args:
        setting: Known whole.
        weights: Whether all inputs but the first are weights; None where that isn't known, or there's one input.
    """
    schema = setting.schema
    ranks: dict[str, int] = {}
    values: dict[str, str] = {}
    optional = [formal.name for formal in schema.inputs if formal.option.name == "Optional"]
    for place, operand in enumerate(setting.inputs):
        if operand is None:
            continue
        name = schema.inputs[min(place, len(schema.inputs) - 1)].name
        if operand.array is not None:
            values[name] = sort_of(value_in(operand.array))
        else:
            ranks[name] = max(ranks.get(name, 0), operand.type.rank)
            if name in optional:
                values[name] = "given"
    for name in (*optional, *schema.attributes):
        if name in setting.attributes:
            values[name] = sort_of(setting.attributes[name])
        else:
            values.setdefault(name, _LEFT_OUT)
    if weights is not None:
        values[WEIGHTS] = "initializers" if weights else "inputs"
    parts: tuple[dict[str, Any], ...] = (setting.types, ranks, values)
    return tuple((kind, name, value) for kind, part in zip(KINDS, parts, strict=True) for name, value in part.items())


def sort_of(value: Any) -> str:
    """A value as one of a few sorts."""
    if isinstance(value, str | bytes):
        return value if isinstance(value, str) else value.decode(errors="replace")
    if isinstance(value, bool | int):
        return "negative" if value < 0 else str(int(value)) if value < _LARGE else f"{_LARGE} or more"
    if isinstance(value, float):
        return "negative" if value < 0 else "positive" if value else "0"
    if isinstance(value, tuple):
        sorts = list(dict.fromkeys(map(sort_of, value)))
        if len(sorts) > 1:
            return "some negative" if "negative" in sorts else "different"
        return f"all {sorts[0]}" if sorts else "none"
    return "a graph or tensor"

"""Facts of an operator's setting by which a target may refuse it: types, axes, sorts of values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from conrepair_lab.generate.settings.setting import Setting
from conrepair_lab.generate.settings.tensors import value_in

Fact = tuple[str, str, Any]
"""The field of `Facts`, the name there, and the value."""

KINDS = ("types", "ranks", "values")

WEIGHTS = "weights"
"""Among values: whether the model has weights, where it may."""

_LEFT_OUT = "left out"
_LARGE = 4


@dataclass(frozen=True)
class Facts:
    """The facts of a setting.

    Attributes:
        types: Element types, by type variable.
        ranks: Numbers of axes, by input; the most of those of a list. Constants have none.
        values: Sorts of values, by attribute and by input that is constant or optional.
    """

    types: Mapping[str, str]
    ranks: Mapping[str, int]
    values: Mapping[str, str]


def facts_in(facts: Facts) -> Iterator[Fact]:
    """Each of them by itself."""
    for kind in KINDS:
        for name, value in getattr(facts, kind).items():
            yield kind, name, value


def facts_of(setting: Setting, weights: bool | None = None) -> Facts:
    """The facts of a setting, joined.

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
    return Facts(dict(setting.types), ranks, values)


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

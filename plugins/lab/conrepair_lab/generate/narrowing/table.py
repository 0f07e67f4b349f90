"""The settings that a target took and refused, by operator, and what it never takes.

A support can be narrowed to that.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conrepair_lab.generate.settings.ports import Support
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


_OWN = re.compile(r"\([^()]*\)|\b[tn]\d+(?:_\w+)?\b|/\S+|0x[0-9a-f]+|\d+")
"""What a refusal says of one model alone."""

_LETTERS = 120


@dataclass(frozen=True)
class NarrowingRow:
    """One setting, and whether the target took it.

    Attributes:
        facts: What it's like.
        refusal: The target's words; None if it took it.
        changed: Kind and name of what alone was changed of a setting that it took; None for one that was drawn.
    """

    facts: tuple[Fact, ...]
    refusal: str | None
    changed: tuple[str, str] | None = None


@dataclass(frozen=True)
class Acceptance:
    """What a target takes of an operator.

    Attributes:
        settings: How many it was tried with.
        taken: How many of them it took.
        types: Element types that it takes, by type variable.
        no_types: Those that it never takes.
        ranks: Numbers of axes that it takes, by input.
        no_ranks: Those that it never takes.
        no_values: Sorts of values that it never takes, by attribute and by input.
        refusals: First words of its refusals, with how many.
    """

    settings: int
    taken: int
    types: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    no_types: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ranks: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    no_ranks: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    no_values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    refusals: Mapping[str, int] = field(default_factory=dict)

    @property
    def share(self) -> float:
        """The share of settings that the target took."""
        return self.taken / max(1, self.settings)

    def allows(self, facts: Iterable[Fact]) -> bool:
        """Whether nothing of a setting is among what is never taken."""
        never = {"types": self.no_types, "ranks": self.no_ranks, "values": self.no_values}
        return bool(self.taken) and not any(value in never[kind].get(name, ()) for kind, name, value in facts)


class Narrowed(Support):
    """What a runtime takes, without what a target never takes.

    Args:
        support: Of the runtime that computes networks.
        taken: What the target takes, by operator; one that isn't there is as the runtime has it.
    """

    def __init__(self, support: Support, taken: Mapping[str, Acceptance]) -> None:
        self.within, self._taken = support, taken

    def choices(self, op: str, bound: Mapping[str, str], variable: str, dtypes: tuple[str, ...]) -> tuple[str, ...]:
        left = super().choices(op, bound, variable, dtypes)
        found = self._taken.get(op)
        if found is None:
            return left
        return tuple(dtype for dtype in left if found.taken and dtype not in found.no_types.get(variable, ()))

    def allows(self, setting: Setting) -> bool:
        found = self._taken.get(setting.op)
        return super().allows(setting) and (found is None or found.allows(facts_of(setting)))


def taken_of(rows: Sequence[NarrowingRow]) -> Acceptance:
    """The acceptance of an operator, by its settings.

    What is never taken is what turned a setting that is taken into a refused one, changed alone, and is in none that
    is taken: what is refused for its type says nothing about its rank, nor an attribute about the type beside it.

    Args:
        rows: Of one operator.
    """
    taken = _by_kind(fact for row in rows if row.refusal is None for fact in row.facts)
    never = _by_kind(
        fact for fact in suspects(rows) if any(row.changed == fact[:2] and fact in row.facts for row in rows)
    )
    refusals = collections.Counter(_first_words(row.refusal) for row in rows if row.refusal is not None)
    return Acceptance(
        settings=len(rows),
        taken=sum(row.refusal is None for row in rows),
        types=taken["types"],
        no_types=never["types"],
        ranks=taken["ranks"],
        no_ranks=never["ranks"],
        no_values=never["values"],
        refusals=dict(refusals.most_common()),
    )


def suspects(rows: Sequence[NarrowingRow]) -> list[Fact]:
    """Candidate reasons of refusals: facts that are in refused settings and in no accepted one.

    Args:
        rows: Of one operator.
    """
    taken = {fact for row in rows if row.refusal is None for fact in row.facts}
    return [fact for fact in dict.fromkeys(fact for row in rows for fact in row.facts) if fact not in taken]


def _by_kind(facts: Iterable[Fact]) -> dict[str, dict[str, tuple[Any, ...]]]:
    """Values in order, by kind and name."""
    found: dict[str, dict[str, set[Any]]] = {kind: {} for kind in KINDS}
    for kind, name, value in facts:
        found[kind].setdefault(name, set()).add(value)
    return {kind: {name: tuple(sorted(values)) for name, values in part.items()} for kind, part in found.items()}


def _first_words(refusal: str) -> str:
    """A refusal without what is different for each model."""
    line = next(filter(None, map(str.strip, refusal.splitlines())), "no words")
    return _OWN.sub("…", line)[:_LETTERS]

"""What was seen of a target, operator by operator, and what follows: what it takes, and what it never takes."""

from __future__ import annotations

import collections
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from conrepair.generate.narrowing.facts import WEIGHTS, Facts

__all__ = ["Acceptance", "NarrowingRow", "taken_of"]

_FEWEST = 3
"""Of settings that were all refused, before it's said that something is never taken."""

_CHANCE = 0.002
"""How likely so many settings in a row may be refused for another reason, at most."""

_OWN = re.compile(r"\([^()]*\)|\b[tn]\d+(?:_\w+)?\b|/\S+|0x[0-9a-f]+|\d+")
"""What a refusal says of one model alone."""

_LETTERS = 120


@dataclass(frozen=True)
class NarrowingRow:
    """One setting, and what became of it.

    Attributes:
        facts: What it's like.
        refusal: The target's words; None if it took it.
    """

    facts: Facts
    refusal: str | None

    def as_json(self) -> dict[str, Any]:
        """For a file."""
        return {**asdict(self.facts), "refusal": self.refusal}

    @staticmethod
    def of_json(value: Mapping[str, Any]) -> NarrowingRow:
        """From a file."""
        return NarrowingRow(Facts(value["types"], value["ranks"], value["values"]), value["refusal"])


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
        """Of the settings, what it took."""
        return self.taken / max(1, self.settings)

    def allows(self, facts: Facts) -> bool:
        """Whether nothing of a setting is among what is never taken."""
        return bool(self.taken) and not (
            _meets(facts.types, self.no_types)
            or _meets(facts.ranks, self.no_ranks)
            or _meets(facts.values, self.no_values)
        )


def taken_of(rows: Sequence[NarrowingRow]) -> Acceptance:
    """What follows from an operator's settings.

    First whether it takes inputs in the place of weights; then, of the settings that this leaves, which element types
    are never taken; then, of those without them, which ranks; then which values: what is refused for its type says
    nothing about its rank.

    Args:
        rows: Of one operator.
    """
    forms = [({WEIGHTS: row.facts.values.get(WEIGHTS)}, row.refusal is None) for row in rows]
    _, no_forms = _split([(own, took) for own, took in forms if own[WEIGHTS] is not None])
    left = [row for row in rows if not _meets(row.facts.values, no_forms)]
    types, no_types = _split([(row.facts.types, row.refusal is None) for row in left], chance=1.0)
    left = [row for row in left if not _meets(row.facts.types, no_types)]
    ranks, no_ranks = _split([(row.facts.ranks, row.refusal is None) for row in left])
    left = [row for row in left if not _meets(row.facts.ranks, no_ranks)]
    _, no_values = _split([(row.facts.values, row.refusal is None) for row in left])
    refusals = collections.Counter(_first_words(row.refusal) for row in rows if row.refusal is not None)
    return Acceptance(
        settings=len(rows),
        taken=sum(row.refusal is None for row in rows),
        types=types,
        no_types=no_types,
        ranks=ranks,
        no_ranks=no_ranks,
        no_values=no_values | no_forms,
        refusals=dict(refusals.most_common()),
    )


def _split(
    seen: Iterable[tuple[Mapping[str, Any], bool]], chance: float = _CHANCE
) -> tuple[dict[str, tuple[Any, ...]], dict[str, tuple[Any, ...]]]:
    """What was taken at least once, and what never was, by name.

    Args:
        seen: Of each setting what it has, by name, and whether it was taken.
        chance: How likely what was never taken may have been so by chance.
    """
    rows = list(seen)
    tries: dict[str, dict[Any, list[bool]]] = {}
    for own, took in rows:
        for name, value in own.items():
            tries.setdefault(name, {}).setdefault(value, []).append(took)
    total, taken = len(rows), sum(took for _, took in rows)
    some: dict[str, tuple[Any, ...]] = {}
    never: dict[str, tuple[Any, ...]] = {}
    for name, found in tries.items():
        some[name] = tuple(sorted(value for value, answers in found.items() if any(answers)))
        refused = []
        for value, answers in found.items():
            others = taken / max(1, total - len(answers))
            if not any(answers) and len(answers) >= _FEWEST and (1 - others) ** len(answers) <= chance:
                refused.append(value)
        if refused:
            never[name] = tuple(sorted(refused))
    return some, never


def _meets(own: Mapping[str, Any], never: Mapping[str, Sequence[Any]]) -> bool:
    return any(own.get(name) in values for name, values in never.items() if name in own)


def _first_words(refusal: str) -> str:
    """A refusal without what is different for each model."""
    line = next(filter(None, map(str.strip, refusal.splitlines())), "no words")
    return _OWN.sub("…", line)[:_LETTERS]

"""All variants of a pattern that stands alone: each of its alternatives, types, ranks and sorts of sizes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from random import Random
from typing import Any

from conrepair_lab.generate.graph import Draft
from conrepair_lab.generate.patterns.pattern import Pattern
from conrepair_lab.generate.settings.ports import NotAllowedError, Support
from conrepair_lab.generate.settings.shapes import AnyShape
from conrepair_lab.generate.settings.tensors import FLOATS
from conrepair_lab.generate.weaving import Weaver

_USUAL = (3, 2, 4, 1, 5, 6, 0)
"""Numbers of axes: the first of those that are allowed is what isn't varied has."""

_SIZES: Sequence[Sequence[int]] = ((3, 2, 5, 4, 2, 3), (3,) * 6, (1,) * 6, (4, 4, 4, 1, 4, 4), (4, 4, 4, 2, 3, 1))
"""All different, or alike; 1 in some places. The last ones are taken."""


class Varying(Weaver):
    """Takes the first of what a pattern has several of, but in one place.

    Attributes:
        counts: How many there were, place by place.
    """

    def __init__(self, draft: Draft, random: Random, support: Support, most: int, *, place: int, taken: int) -> None:
        super().__init__(draft, random, support, most, "pattern")
        self._place, self._taken = place, taken
        self.counts: list[int] = []

    def one(self, choices: Sequence[Any]) -> Any:
        """The first, or the one that was asked for in this place."""
        self.counts.append(len(choices))
        return choices[self._taken if len(self.counts) - 1 == self._place else 0]

    def dtype(self, dtypes: Collection[str] = FLOATS) -> str:
        """Each of them in turn."""
        return str(self.one(tuple(dtypes)))

    def made(self, dtypes: Collection[str], pattern: AnyShape) -> str:
        """The first of all: one of each element type, number of axes and sort of sizes."""
        if any(tensor.free for tensor in self.draft.tensors.values()):
            return super().made(dtypes, pattern)
        axes = self.one([number for number in _USUAL if number in pattern.ranks])
        sizes = self.one(_SIZES)
        return self.new(self.dtype(dtypes), sizes[len(sizes) - axes :])


def variants(pattern: Pattern, support: Support, opset: int, most: int) -> Iterator[Draft]:
    """A pattern in all its variants, one thing varied at a time.

    Args:
        pattern: Which.
        support: What its nodes may be.
        opset: Of the standard's operators.
        most: Elements that a tensor may have.
    """
    first = _variant(pattern, support, opset, most, -1, 0)
    if first[1] is not None:
        yield first[1]
    for place, count in enumerate(first[0]):
        for taken in range(1, count):
            _, found = _variant(pattern, support, opset, most, place, taken)
            if found is not None:
                yield found


def _variant(
    pattern: Pattern, support: Support, opset: int, most: int, place: int, taken: int
) -> tuple[Sequence[int], Draft | None]:
    draft = Draft(opset)
    random = Random(f"{pattern.name} {place} {taken}")
    weaver = Varying(draft, random, support, most, place=place, taken=taken)
    with suppress(NotAllowedError), weaver.whole():
        pattern.body(weaver)
        return weaver.counts, draft
    return weaver.counts, None

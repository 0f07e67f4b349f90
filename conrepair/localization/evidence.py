"""What two networks are compared by, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from conrepair.localization.equals import EXACT, Likeness, Same, equal_pairs
from conrepair.localization.guessing import Wanted
from conrepair.localization.matching import Pair, match, shown_pairs
from conrepair.localization.neighbourhood import Neighbourhood
from conrepair.localization.samples import Fetch
from conrepair.localization.similarity import Similarity
from conrepair.localization.structure import Structure
from conrepair.metrics.running_error import relative_l2

__all__ = ["Evidence"]


@dataclass(frozen=True)
class Evidence:
    """What two networks are compared by.

    Attributes:
        source: Tensors down.
        target: Tensors across.
        similarity: Of values; grows.
        structure: Of the graphs.
        expected: Gives the source's values.
        likeness: When values are the same.
    """

    source: Neighbourhood
    target: Neighbourhood
    similarity: Similarity
    structure: Structure
    expected: Fetch
    likeness: Likeness = EXACT
    _found: dict[int, tuple[Same, list[Pair]]] = field(default_factory=dict, init=False, repr=False)

    def match(self, wanted: Wanted | None = None) -> list[Pair]:
        """The pairs that are likeliest by what's known.

        Args:
            wanted: Which guesses are; the likely ones when None.
        """
        sides = self.source, self.target, self.similarity, self.structure
        return match(*sides, likeness=self.likeness, wanted=wanted, same=self._same()[0])

    def known(self) -> list[Pair]:
        """Those of them that values, or what's computed from them, show."""
        return self._same()[1]

    def _same(self) -> tuple[Same, list[Pair]]:
        """The same for as long as nothing new is known."""
        version = self.similarity.version
        if version not in self._found:
            sides = self.source, self.target, self.similarity
            same = equal_pairs(*sides, self.structure, self.likeness)
            self._found.clear()
            self._found[version] = same, shown_pairs(*sides, same, self.likeness)
        return self._found[version]

    def holds(self, pair: Pair) -> bool:
        """Whether the target's tensor can hold the source's values: what's cut off when it's fed proves nothing."""
        stored = self.target.graph.tensors[pair.target].stored
        if stored is None:
            return True
        values = self.expected(pair.source)
        return relative_l2(values, np.clip(values, *stored)) <= self.likeness.error

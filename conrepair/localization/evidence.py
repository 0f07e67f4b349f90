"""What two networks are compared by, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from conrepair.localization.equals import ComparedNetworks, Same, equal_pairs
from conrepair.localization.guessing import Wanted
from conrepair.localization.matching import Pair, match, shown_pairs
from conrepair.localization.samples import Fetch
from conrepair.metrics.running_error import relative_l2

__all__ = ["Evidence"]


@dataclass(frozen=True)
class Evidence(ComparedNetworks):
    """The same, with what's known at each time.

    Attributes:
        expected: Gives the source's values.
    """

    expected: Fetch = field(kw_only=True)
    _found: dict[int, tuple[Same, list[Pair]]] = field(default_factory=dict, init=False, repr=False)

    def match(self, wanted: Wanted | None = None) -> list[Pair]:
        """The pairs that are likeliest by what's known.

        Args:
            wanted: Which guesses are; the likely ones when None.
        """
        return match(self, wanted, self._same()[0])

    def known(self) -> list[Pair]:
        """Those of them that values, or what's computed from them, show."""
        return self._same()[1]

    def _same(self) -> tuple[Same, list[Pair]]:
        """The same for as long as nothing new is known."""
        version = self.similarity.version
        if version not in self._found:
            same = equal_pairs(self)
            self._found.clear()
            self._found[version] = same, shown_pairs(self, same)
        return self._found[version]

    def holds(self, pair: Pair) -> bool:
        """Whether the target's tensor can hold the source's values: what's cut off when it's fed proves nothing."""
        stored = self.target.graph.tensors[pair.target].stored
        if stored is None:
            return True
        values = self.expected(pair.source)
        return relative_l2(values, np.clip(values, *stored)) <= self.likeness.error

"""How alike the tensors of two networks are, judged by their values: the near pairs, and any other when asked."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from conrepair.diagnosis.localization.align.layout import Layout, layouts
from conrepair.diagnosis.localization.align.nearness import Near, Nearness
from conrepair.diagnosis.localization.align.samples import ComparedTensors, Matrix, Places, Samples, compare, drawn
from conrepair.ground.metrics.running_error import error_of, relative_l2

NEAREST = math.inf
"""A reach for which the nearest tensors are looked for, however far they are."""


class Similarity:
    """What is known of the pairs of two networks' tensors, by their places.

    Attributes:
        hidden: Whether errors include those that a tensor's norm hides (`metrics.body`).
        near: Pairs that are near, in the order of their places.
    """

    def __init__(self, sources: Samples, targets: Samples, reach: float, *, hidden: bool = True) -> None:
        """Look for the pairs that are near.

        Args:
            sources: Of the network that is right.
            targets: Of the other.
            reach: Relative L2 below which a pair is near; `NEAREST` for the nearest of each tensor.
            hidden: Whether to look at what a tensor's norm hides, too.
        """
        self.hidden = hidden
        self._sides = sources, targets
        self._nearness = Nearness(sources, reach, hidden=hidden)
        self._hold(self.again(targets))

    def _hold(self, near: Near) -> None:
        self.near, self._keys = near, near.rows * self.size[1] + near.columns

    @property
    def size(self) -> tuple[int, int]:
        """How many tensors the networks have."""
        return len(self._sides[0].names), len(self._sides[1].names)

    def possible(self, row: int, column: int) -> bool:
        """Whether two tensors' shapes fit."""
        return bool(layouts(self._sides[0].shapes[row], self._sides[1].shapes[column]))

    def layout(self, row: int, column: int) -> Layout:
        """The layout in which two tensors are most alike.

        Raises:
            ValueError: if no layout fits.
        """
        place = self._place(row, column)
        if place is None:
            return self.likeliest(row, column)[0]
        return self.near.choices[int(self.near.layout[place])]

    def likeliest(self, row: int, column: int) -> tuple[Layout, float]:
        """The layout in which two tensors are most alike, and the correlation of their values in it.

        Raises:
            ValueError: if no layout fits.
        """
        found = self._compared(row, column)
        if found.layout is None:
            raise ValueError("a pair without a layout")
        return found.layout, found.correlation

    def error(self, row: int, column: int) -> float:
        """Relative L2 of two tensors in the layout in which it's least; infinite where none fits."""
        place = self._place(row, column)
        return float(self.near.error[place] if place is not None else self._compared(row, column).error)

    def closest(self) -> Matrix:
        """Relative L2 of each target against the closest source that's near; infinite for none."""
        result = np.full(self.size[1], np.inf)
        np.minimum.at(result, self.near.columns, self.near.error)
        return result

    def nearest(self) -> list[tuple[Places, Matrix]]:
        """For each source, and for each target, the place of the nearest, and its relative L2.

        The place is -1, and the error infinite, where none is near.
        """
        rows, columns, error = self.near.rows, self.near.columns, self.near.error
        found = []
        for one, two, size in ((rows, columns, self.size[0]), (columns, rows, self.size[1])):
            places, errors = np.full(size, -1), np.full(size, np.inf)
            order = np.lexsort((two, error, one))[::-1]  # the least is written last
            places[one[order]], errors[one[order]] = two[order], error[order]
            found.append((places, errors))
        return found

    def _compared(self, row: int, column: int) -> ComparedTensors:
        return compare(self._sides[0], row, self._sides[1], column, hidden=self.hidden)

    def _place(self, row: int, column: int) -> int | None:
        """Where a pair is among the near ones, which lie in the order of their keys."""
        key = row * self.size[1] + column
        place = int(np.searchsorted(self._keys, key))
        return place if place < len(self._keys) and self._keys[place] == key else None

    def refine(self, alike: float) -> None:
        """Compare all elements where the sampled ones can't tell which of several tensors is meant.

        Args:
            alike: Relative L2 below which two tensors may be the same.
        """
        near = self.near
        close = near.error < alike
        counts = [np.bincount(side[close], minlength=1) for side in (near.rows, near.columns)]
        measure: Callable[..., float] = error_of if self.hidden else relative_l2
        for place in np.flatnonzero(close).tolist():
            row, column = int(near.rows[place]), int(near.columns[place])
            layout = near.choices[int(near.layout[place])]
            size = math.prod(layout.source)
            if max(counts[0][row], counts[1][column]) > 1 and len(drawn(size)) < size:
                values = self._sides[0].value(row), layout.to_source(self._sides[1].value(column))
                near.error[place] = measure(*values)

    def equal(self, alike: float) -> int:
        """How many targets have a source that's closer than a relative L2."""
        return len(np.unique(self.near.columns[self.near.error < alike]))

    def again(self, targets: Samples) -> Near:
        """The pairs that are near when the target computed some of its tensors anew.

        Args:
            targets: Those tensors.
        """
        return self._nearness.pairs(targets)

    def improve(self, found: Near, columns: Places) -> None:
        """Take over targets whose values were computed anew, where that makes them more like a source.

        Args:
            found: With the same sources, and some of the targets.
            columns: Where those are here.
        """
        near = self.near
        rows = np.concatenate([near.rows, found.rows])
        theirs = np.concatenate([near.columns, columns[found.columns]])
        error = np.concatenate([near.error, found.error])
        layout = np.concatenate([near.layout, found.layout + len(near.choices)])
        keys = rows * self.size[1] + theirs
        order = np.lexsort((layout, error, keys))
        first = order[np.flatnonzero(np.diff(keys[order], prepend=-1))]
        self._hold(Near(rows[first], theirs[first], error[first], layout[first], [*near.choices, *found.choices]))

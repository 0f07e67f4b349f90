"""How alike the tensors of two networks are, judged by their values: the near pairs, and any other when asked."""

from __future__ import annotations

import functools
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from conrepair.localization.apart import Apart
from conrepair.localization.layout import Layout, layouts
from conrepair.localization.nearness import Near, Nearness
from conrepair.localization.neighbourhood import Neighbours
from conrepair.localization.samples import Matrix, Places, SampleComparison, Samples, compare, drawn
from conrepair.metrics.running_error import error_of, relative_l2

__all__ = ["NEAREST", "Known", "Similarity"]

NEAREST = math.inf
"""A reach for which the nearest tensors are looked for, however far they are."""

_HELD = 8  # blocks that are kept
_NONE = Near(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64), [])
_ACROSS, _DOWN = 512, 1024  # targets and sources at a time that are compared, each with each


@dataclass(frozen=True)
class Known:
    """Pairs that are near, or proven, and possible.

    Attributes:
        rows: Places in the source.
        columns: Places in the target.
        error: Relative L2; infinite where a pair is proven and not near.
        proven: By something else than their values.
        apart: Whether the pair is off by some per cent, and every other one of the two much further.
        closest: The least error that each pair's column has with any source, possible or not.
    """

    rows: Places
    columns: Places
    error: Matrix
    proven: npt.NDArray[np.bool_]
    apart: npt.NDArray[np.bool_]
    closest: Matrix


class Similarity:
    """What is known of the pairs of two networks' tensors, by their places.

    Attributes:
        version: Grows with what is known.
        hidden: Whether errors include those that a tensor's norm hides (`metrics.body`).
        apart: Pairs that are off by some per cent; none before they were looked for.
    """

    def __init__(self, sources: Samples, targets: Samples, reach: float, *, hidden: bool = True) -> None:
        """Look for the pairs that are near.

        Args:
            sources: Of the network that is right.
            targets: Of the other.
            reach: Relative L2 below which a pair is near; `NEAREST` for the nearest of each tensor.
            hidden: Whether to look at what a tensor's norm hides, too.
        """
        self.version, self.hidden = 0, hidden
        self._sides, self._reach = (sources, targets), reach
        self._nearness = Nearness(sources, reach, hidden=hidden)
        self._partners = np.full(len(sources.names), -1), np.full(len(targets.names), -1)
        self._layouts: dict[int, Layout] = {}
        self._blocks: deque[tuple[Places, Places, SampleComparison]] = deque(maxlen=_HELD)
        self.apart = Apart(_NONE, self.size, reach, ())
        self._hold(self.again(targets))

    def _hold(self, near: Near) -> None:
        self._near, self._keys = near, near.rows * self.size[1] + near.columns
        self.version += 1

    @property
    def size(self) -> tuple[int, int]:
        """How many tensors the networks have."""
        return len(self._sides[0].names), len(self._sides[1].names)

    def known(self) -> Known:
        """The pairs that may be right by their values, or are proven."""
        closest = self.closest()
        ours = np.flatnonzero(self._partners[0] >= 0)
        near = self._free(self._near)
        apart = self._free(self.apart.pairs, except_for=self._keys)
        rows = np.concatenate([near[0], apart[0], ours])
        columns = np.concatenate([near[1], apart[1], self._partners[0][ours]])
        error = np.concatenate([near[2], apart[2], [self.error(*pair) for pair in self.proven.items()]])
        place, few = np.arange(len(rows)), len(near[0])
        proven = place >= few + len(apart[0])
        return Known(rows, columns, error, proven, (place >= few) & ~proven, closest[columns])

    def _free(self, near: Near, except_for: Places | None = None) -> tuple[Places, Places, Matrix]:
        """Rows, columns and errors of pairs neither tensor of which is proven to be another's."""
        free = (self._partners[0][near.rows] < 0) & (self._partners[1][near.columns] < 0)
        if except_for is not None:
            free &= ~np.isin(near.rows * self.size[1] + near.columns, except_for)
        return near.rows[free], near.columns[free], near.error[free]

    def look_apart(self, neighbours: Neighbours) -> None:
        """From now on know those pairs, too, that are off by some per cent, and all others of the two much further.

        Where the nearest are looked for anyway, nothing is added.

        Args:
            neighbours: Before the tensors, and behind them.
        """
        if math.isfinite(self._reach):
            sources, targets = self._sides
            nearest = Nearness(sources, NEAREST, hidden=self.hidden).pairs(targets)
            self.apart = Apart(nearest, self.size, self._reach, neighbours)
            self.version += 1

    def possible(self, rows: Places, columns: Places) -> npt.NDArray[np.bool_]:
        """Which pairs can be right: shapes fit, and neither tensor is proven to be another's.

        Args:
            rows: In the source.
            columns: In the target; both broadcast.
        """
        codes, table = self.shapes
        one, two = self._partners[0][rows], self._partners[1][columns]
        free = ((one < 0) & (two < 0)) | (one == columns)
        return np.asarray(table[codes[0][rows], codes[1][columns]] & free)

    @functools.cached_property
    def shapes(self) -> tuple[tuple[Places, Places], npt.NDArray[np.bool_]]:
        """A number for each tensor's shape, and which of the one side's numbers fit which of the other's."""
        codes = np.empty(self.size[0], np.int64), np.empty(self.size[1], np.int64)
        for side, code in zip(self._sides, codes, strict=True):
            for number, places in enumerate(side.by_shape.values()):
                code[places] = number
        shapes = [list(side.by_shape) for side in self._sides]
        table = np.zeros((len(shapes[0]), len(shapes[1])), np.bool_)
        for place in np.ndindex(*table.shape):
            table[place] = bool(layouts(shapes[0][place[0]], shapes[1][place[1]]))
        return codes, table

    def layout(self, row: int, column: int) -> Layout:
        """The layout in which two tensors are most alike.

        Raises:
            ValueError: if no layout fits.
        """
        if self._partners[0][row] == column:
            return self._layouts[row]
        place = self._place(row, column)
        if place is not None:
            return self._near.choices[int(self._near.layout[place])]
        found = self.apart.layout(row, column) or self._compared(row, column).best_layout(0, 0)
        if found is None:
            raise ValueError("a pair without a layout")
        return found

    def error(self, row: int, column: int) -> float:
        """Relative L2 of two tensors in the layout in which it's least; infinite where none fits."""
        place = self._place(row, column)
        return float(self._near.error[place] if place is not None else self._compared(row, column).error[0, 0])

    def closest(self) -> Matrix:
        """Relative L2 of each target against the closest source that's near, possible or not; infinite for none."""
        result = np.full(self.size[1], np.inf)
        np.minimum.at(result, self._near.columns, self._near.error)
        return result

    def nearest(self) -> list[tuple[Places, Matrix]]:
        """For each source, and for each target, the place of the nearest that's possible, and its relative L2.

        The place is -1, and the error infinite, where none is near.
        """
        near = self._near
        free = self.possible(near.rows, near.columns)
        rows, columns, error = near.rows[free], near.columns[free], near.error[free]
        found = []
        for one, two, size in ((rows, columns, self.size[0]), (columns, rows, self.size[1])):
            places, errors = np.full(size, -1), np.full(size, np.inf)
            order = np.lexsort((two, error, one))[::-1]  # the least is written last
            places[one[order]], errors[one[order]] = two[order], error[order]
            found.append((places, errors))
        return found

    def far_errors(self, columns: Sequence[int]) -> list[float]:
        """Relative L2 of some targets against the closest source each, possible or not, however far it is."""
        found: list[float] = []
        for start in range(0, len(columns), _ACROSS):
            chosen = np.array(columns[start : start + _ACROSS], np.int64)
            best = np.full(len(chosen), np.inf)
            for first in range(0, self.size[0], _DOWN):
                rows = np.arange(first, min(first + _DOWN, self.size[0]))
                block = compare(self._sides[0], rows, self._sides[1], chosen, hidden=self.hidden)
                best = np.minimum(best, block.error.min(axis=0, initial=np.inf))
            found += best.tolist()
        return found

    def block(self, rows: Places, columns: Places) -> SampleComparison:
        """Some tensors compared each with each, by values of the target that nothing was fed to.

        Args:
            rows: Places in the source, in order.
            columns: Places in the target, in order.
        """
        for ours, theirs, block in self._blocks:
            if np.isin(rows, ours, assume_unique=True).all() and np.isin(columns, theirs, assume_unique=True).all():
                return block.part(np.searchsorted(ours, rows), np.searchsorted(theirs, columns))
        block = compare(self._sides[0], rows, self._sides[1], columns, hidden=self.hidden)
        self._blocks.append((rows, columns, block))
        return block

    def _compared(self, row: int, column: int) -> SampleComparison:
        places = np.array([row]), np.array([column])
        return compare(self._sides[0], places[0], self._sides[1], places[1], hidden=self.hidden)

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
        near = self._near
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
        self.version += 1

    def equal(self, alike: float) -> int:
        """How many targets have a possible source that's closer than a relative L2."""
        near = self._near
        found = (near.error < alike) & self.possible(near.rows, near.columns)
        return len(np.unique(near.columns[found]))

    def prove(self, row: int, column: int, layout: Layout) -> None:
        """Let two tensors be a pair, and neither of them any other's.

        Args:
            row: Of the source.
            column: Of the target.
            layout: How the one lies in the other.
        """
        for side, place in enumerate((row, column)):
            before = int(self._partners[side][place])
            if before >= 0:
                self._partners[1 - side][before] = -1
        self._partners[0][row], self._partners[1][column] = column, row
        self._layouts[row] = layout
        self.version += 1

    @property
    def proven(self) -> dict[int, int]:
        """The pairs that something else than their values has shown to be right."""
        return {row: column for row, column in enumerate(self._partners[0].tolist()) if column >= 0}

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
            columns: Where those are here; -1 for those that aren't taken over.
        """
        moved = columns[found.columns]
        near, width = self._near, self.size[1]
        taken = (moved >= 0) & self.possible(found.rows, np.maximum(moved, 0))
        rows = np.concatenate([near.rows, found.rows[taken]])
        theirs = np.concatenate([near.columns, moved[taken]])
        error = np.concatenate([near.error, found.error[taken]])
        layout = np.concatenate([near.layout, found.layout[taken] + len(near.choices)])
        keys = rows * width + theirs
        order = np.lexsort((layout, error, keys))
        first = order[np.flatnonzero(np.diff(keys[order], prepend=-1))]
        self._hold(Near(rows[first], theirs[first], error[first], layout[first], [*near.choices, *found.choices]))

"""Which tensors of two networks have nearly the same values, without comparing each with each."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from conrepair.diagnosis.localization.align.layout import Layout, Shape, layouts
from conrepair.diagnosis.localization.align.samples import SEED, Matrix, Places, Samples, drawn, positions_of
from conrepair.diagnosis.localization.numbers import pairing

_DIRECTIONS = 16  # that values are projected on
_NOTHING = -1e3  # where tensors of zeros are, and nothing else
_MOST, _MOST_FAR = 64, 16  # neighbours of a tensor that are looked at: of more that are the same, those at its place
_CHUNK, _CACHED = 1 << 21, 1 << 14  # elements at a time, and such as a processor's cache keeps


@dataclass(frozen=True)
class Near:
    """Pairs of tensors, in no order; none occurs twice.

    Attributes:
        rows: Places in the source.
        columns: Places in the target.
        error: Relative L2 in the best layout.
        layout: That layout; indices into `choices`.
        choices: The layouts that occur.
    """

    rows: Places
    columns: Places
    error: Matrix
    layout: npt.NDArray[np.int64]
    choices: list[Layout]


class Nearness:
    """Finds the tensors of other networks that are near one's.

    Values are projected on a few random directions (Johnson and Lindenstrauss); only those that are neighbours there
    are compared.
    """

    def __init__(self, sources: Samples, reach: float, *, hidden: bool) -> None:
        """Prepare.

        Args:
            sources: Of the one network.
            reach: Relative L2 below which pairs are wanted. Infinite: the nearest ones are, however far.
            hidden: Whether errors include what a tensor's norm hides.
        """
        self._sources, self._reach, self._hidden = sources, reach, hidden
        self._scale = reach if math.isfinite(reach) else pairing.EQUAL
        self._most = _MOST if math.isfinite(reach) else _MOST_FAR
        self._points: dict[Shape, Matrix] = {}

    def pairs(self, targets: Samples) -> Near:
        """Find them.

        Args:
            targets: Of another network.
        """
        parts: list[tuple[Places, Places, Matrix, int]] = []
        choices: list[Layout] = []
        for shape, ours in self._sources.by_shape.items():
            for other, theirs in targets.by_shape.items():
                for layout in layouts(shape, other):
                    others = _points(targets, theirs, positions_of(layout), self._scale)
                    points = self._of(shape, ours)
                    one, two = _neighbours(points, others, pairing.RADIUS * self._reach, self._most)
                    rows, columns = ours[one], theirs[two]
                    error = _exact(self._sources, targets, rows, columns, layout, hidden=self._hidden)
                    near = (error < self._reach) | math.isinf(self._reach)
                    parts.append((rows[near], columns[near], error[near], len(choices)))
                    choices.append(layout)
        return _best(parts, choices, len(targets.names))

    def _of(self, shape: Shape, ours: Places) -> Matrix:
        """The tensors of a shape as points."""
        if shape not in self._points:
            self._points[shape] = _points(self._sources, ours, drawn(math.prod(shape)), self._scale)
        return self._points[shape]


def _best(parts: Sequence[tuple[Places, Places, Matrix, int]], choices: list[Layout], width: int) -> Near:
    """Of each pair the layout with the least error; of several the first."""
    rows, columns = (np.concatenate([part[side] for part in parts] or [np.empty(0, np.int64)]) for side in (0, 1))
    error = np.concatenate([part[2] for part in parts] or [np.empty(0)])
    layout = np.concatenate([np.full(len(part[0]), part[3], np.int64) for part in parts] or [np.empty(0, np.int64)])
    order = np.lexsort((layout, error, rows * width + columns))
    keys = (rows * width + columns)[order]
    first = order[np.flatnonzero(np.diff(keys, prepend=-1))]
    return Near(rows[first], columns[first], error[first], layout[first], choices)


@functools.lru_cache(maxsize=64)
def _directions(size: int) -> Matrix:
    return np.random.default_rng(SEED).choice((-1.0, 1.0), (size, _DIRECTIONS)) / math.sqrt(_DIRECTIONS)


def _points(samples: Samples, places: Places, positions: Places, scale: float) -> Matrix:
    """Tensors as points whose distance is about their relative L2, if that's small.

    Coordinates are the projections of what has a norm of 1, and the norm's logarithm.
    """
    found = []
    for chosen, values in samples.chunks(places, positions):
        finite = np.isfinite(values)
        whole = finite.all(axis=1)
        clean = values if whole.all() else np.where(finite, values, 0.0)
        norms = np.linalg.norm(clean, axis=1)
        sizes = np.where(norms > 0, norms, 1.0)[:, None]
        parts = [
            clean @ _directions(clean.shape[1]) / sizes,
            np.where(norms[:, None] > 0, np.log(sizes), _NOTHING),
            np.where(whole, 0.0, -_NOTHING)[:, None],
            pairing.ORDER * scale * (chosen / max(len(samples.names), 1))[:, None],
        ]
        found.append(np.concatenate(parts, axis=1))
    return np.concatenate(found)


def _neighbours(points: Matrix, others: Matrix, radius: float, most: int) -> tuple[Places, Places]:
    """Places of neighbours, among points and others."""
    one, two, full = _nearest(points, others, radius, most)
    if full:
        back, forth, _ = _nearest(others, points, radius, most)
        both = np.unique(np.concatenate([one * len(others) + two, forth * len(others) + back]))
        one, two = np.divmod(both, len(others))
    return one, two


def _nearest(points: Matrix, others: Matrix, radius: float, most: int) -> tuple[Places, Places, bool]:
    """Of points, the nearest to each other one, and whether any of these may have more."""
    found = [(np.empty(0, np.int64), np.empty(0, np.int64))]
    count, full = min(most, len(points)), False
    size = max(1, _CACHED // len(points))
    for start in range(0, len(others), size):
        chosen = others[start : start + size]
        square = np.zeros((len(chosen), len(points)))
        for axis in range(points.shape[1]):
            square += np.square(chosen[:, axis, None] - points[:, axis])
        near = square < radius**2
        if (near.sum(axis=1) >= count).any():
            full, near = True, near & (square <= np.partition(square, count - 1, axis=1)[:, count - 1, None])
        rows, columns = np.nonzero(near)
        found.append((columns, rows + start))
    one, two = map(np.concatenate, zip(*found, strict=True))
    return one, two, full


def _exact(
    sources: Samples, targets: Samples, rows: Places, columns: Places, layout: Layout, *, hidden: bool
) -> Matrix:
    """Relative L2 of pairs in a layout, by the elements that are drawn."""
    result = np.empty(len(rows))
    positions = drawn(math.prod(layout.source)), positions_of(layout)
    size = max(1, _CHUNK // max(len(positions[0]), 1))
    order = np.argsort(rows, kind="stable")
    for start in range(0, len(order), size):
        chosen = order[start : start + size]
        (ours, left), (theirs, right) = (np.unique(side[chosen], return_inverse=True) for side in (rows, columns))
        values, others = sources.rows(ours, positions[0]), targets.rows(theirs, positions[1])
        errors = _errors(values, others, left, right)
        if hidden:
            begins = np.searchsorted(left, np.arange(len(ours) + 1))
            for row, place in enumerate(ours.tolist()):
                for body in sources.bodies(place, values[row]):
                    part = slice(begins[row], begins[row + 1])
                    errors[part] = np.maximum(errors[part], body.error(values[row], others[right[part]]))
        result[chosen] = errors
    return result


def _errors(values: Matrix, others: Matrix, left: Places, right: Places) -> Matrix:
    finite = np.isfinite(values), np.isfinite(others)
    broken = [~np.asarray(side.all(axis=1)) for side in finite]
    one = np.where(finite[0], values, 0.0) if broken[0].any() else values
    two = np.where(finite[1], others, 0.0) if broken[1].any() else others
    sizes = np.linalg.norm(one, axis=1)[left]
    gap = np.linalg.norm(two[right] - one[left], axis=1)
    error = np.where(sizes > 0, gap / np.where(sizes > 0, sizes, 1.0), np.where(gap > 0, np.inf, 0.0))
    return np.where(broken[0][left] ^ broken[1][right], np.inf, error)

"""Which tensors of two networks are off by some per cent from each other, and by much more from all others."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from conrepair.localization.layout import Layout
from conrepair.localization.nearness import Near
from conrepair.localization.neighbourhood import Neighbours
from conrepair.localization.samples import Matrix, Places

__all__ = ["Apart"]

_OFF = 0.1  # relative L2 that a pair may be off by, if all others are further
_MUCH_FURTHER = 8.0  # times that others are off by
_AS_NEAR = 1.001  # times that those may be off by that hold the same: a tensor before and behind a reshape
_ROUNDING = 1e-6
_EVERYWHERE = 0.2  # of the target's tensors that aren't the same as any, and at least so many, that all this is so of
_MANY = 10


class Apart:
    """What the values of a whole run tell of tensors that aren't the same.

    Where every layer is wrong by a little, no values are the same; but two that stand for one another are still
    nearer than any others are. That two are may be chance where that's so of few tensors only: then some of those
    that they're computed from, or that are computed from them, have to be such a pair as well.

    Attributes:
        pairs: Those that are off by some per cent, where every other one of the two tensors is off by much more.
    """

    def __init__(self, nearest: Near, size: tuple[int, int], same: float, neighbours: Neighbours) -> None:
        """Take the nearest tensors of each.

        Args:
            nearest: Of a whole run.
            size: How many tensors the networks have.
            same: Relative L2 below which two tensors are the same.
            neighbours: Before the tensors, and behind them.
        """
        ours = _least(nearest.rows, nearest.error, size[0])
        theirs = _least(nearest.columns, nearest.error, size[1])
        chosen = nearest.error <= _OFF
        chosen &= _is_nearest(nearest.rows, nearest.error, ours) & _is_nearest(nearest.columns, nearest.error, theirs)
        count = np.unique(nearest.columns[chosen & (nearest.error > same)]).size
        if count < max(_MANY, _EVERYWHERE * np.count_nonzero(theirs > same)):
            chosen[chosen] = _supported(nearest.rows[chosen], nearest.columns[chosen], size[1], neighbours)
        rows, columns, layout = (field[chosen] for field in (nearest.rows, nearest.columns, nearest.layout))
        self.pairs = Near(rows, columns, nearest.error[chosen], layout, nearest.choices)
        self._width, self._keys = size[1], rows * size[1] + columns
        self._taken = np.zeros(size[0], np.bool_), np.zeros(size[1], np.bool_)
        self._taken[0][rows], self._taken[1][columns] = True, True

    def contradicts(self, rows: Places, columns: Places) -> npt.NDArray[np.bool_]:
        """Which pairs can't be right, as one of the two is much nearer to another.

        Args:
            rows: In the source.
            columns: In the target; both broadcast.
        """
        taken = self._taken[0][rows] | self._taken[1][columns]
        return np.asarray(taken & ~np.isin(rows * self._width + columns, self._keys))

    def layout(self, row: int, column: int) -> Layout | None:
        """The layout in which two tensors are such a pair; None where they aren't."""
        places = np.flatnonzero(self._keys == row * self._width + column)
        return self.pairs.choices[int(self.pairs.layout[places[0]])] if len(places) else None


def _least(side: Places, error: Matrix, count: int) -> Matrix:
    """The error of each tensor of a side against the nearest on the other."""
    found = np.full(count, np.inf)
    np.minimum.at(found, side, error)
    return found


def _is_nearest(side: Places, error: Matrix, least: Matrix) -> npt.NDArray[np.bool_]:
    """Which pairs are the nearest of their tensor on a side, which has no other that's nearly as near."""
    nearest, apart = np.maximum(least[side], _ROUNDING), np.full_like(error, np.inf)
    times = np.divide(error, nearest, out=apart, where=np.isfinite(error))
    between = np.zeros(len(least), np.bool_)
    np.logical_or.at(between, side, (times > _AS_NEAR) & (times < _MUCH_FURTHER))
    return np.asarray((times <= _AS_NEAR) & ~between[side])


def _supported(rows: Places, columns: Places, width: int, neighbours: Neighbours) -> npt.NDArray[np.bool_]:
    """Which pairs have neighbours that are a pair as well."""
    keys = rows * width + columns
    found = np.zeros(len(rows), np.bool_)
    for ours, theirs in neighbours:
        left, right = ours[rows][:, :, None], theirs[columns][:, None, :]
        found |= ((left >= 0) & (right >= 0) & np.isin(left * width + right, keys)).any(axis=(1, 2))
    return found

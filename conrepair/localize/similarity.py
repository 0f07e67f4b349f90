"""How alike the tensors of two networks are, judged by their values: every pair at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from conrepair.graph.layer_graph import Array
from conrepair.localize.layout import Layout, Shape, layouts
from conrepair.metrics.body import bodies_of
from conrepair.metrics.running_error import error_of, relative_l2

__all__ = ["Similarity", "compare_values"]

_SAMPLED = 4096  # elements of a tensor that stand for all of it
_SEED = 20261120

Matrix = npt.NDArray[np.float64]
Fetch = Callable[[str], Array]


@dataclass
class Similarity:
    """All pairs of tensors, sources down, targets across.

    Attributes:
        error: Relative L2 between the two in the best layout; infinite where no layout fits.
        correlation: Of the values in that layout, -1 to 1; 0 where it means nothing (constant values).
        layout: The best layout; indices into `choices`, -1 where none fits.
        choices: The layouts that occur.
        hidden: Whether the errors include those that a tensor's norm hides (`metrics.body`).
        proven: Pairs that something else than their values has shown to be right.
    """

    error: Matrix
    correlation: Matrix
    layout: npt.NDArray[np.int32]
    choices: list[Layout]
    hidden: bool = True
    proven: npt.NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        self.proven = np.zeros(self.error.shape, np.bool_)

    def best_layout(self, source: int, target: int) -> Layout | None:
        """The layout in which two tensors are most alike; None where none fits."""
        index = int(self.layout[source, target])
        return None if index < 0 else self.choices[index]

    def refine(
        self, alike: float, sources: Sequence[str], source: Fetch, targets: Sequence[str], target: Fetch
    ) -> None:
        """Compare all elements where the sampled ones can't tell which of several tensors is meant.

        Args:
            alike: Relative L2 below which two tensors may be the same.
            sources: Names, as down.
            source: Gives a value by its name.
            targets: Names, as across.
            target: The same for the other network.
        """
        close = self.error < alike
        doubtful = close & ((close.sum(axis=1, keepdims=True) > 1) | (close.sum(axis=0, keepdims=True) > 1))
        for row, column in np.argwhere(doubtful):
            layout = self.best_layout(int(row), int(column))
            if layout is not None:
                pair = source(sources[row]), layout.to_source(target(targets[column]))
                self.error[row, column] = error_of(*pair) if self.hidden else relative_l2(*pair)

    def exclude(self, error: float) -> None:
        """Let no pair be of which the relative L2 is larger."""
        self.layout[self.error > error] = -1

    def equal(self, alike: float) -> int:
        """How many targets have a source that's closer than a relative L2."""
        return int(((self.error < alike) & (self.layout >= 0)).any(axis=0).sum())

    def chosen(self, columns: Sequence[int]) -> Similarity:
        """The same of some of the targets."""
        places = list(columns)
        parts = self.error[:, places], self.correlation[:, places], self.layout[:, places]
        return Similarity(*parts, self.choices, self.hidden)

    def prove(self, row: int, column: int, layout: Layout) -> None:
        """Let two tensors be a pair, and neither of them any other's.

        Args:
            row: Of the source.
            column: Of the target.
            layout: How the one lies in the other.
        """
        self.layout[row, :] = -1
        self.layout[:, column] = -1
        self.layout[row, column] = len(self.choices)
        self.choices = [*self.choices, layout]
        self.proven[row, column] = True

    def improve(self, other: Similarity, columns: Sequence[int]) -> None:
        """Take over targets whose values were computed anew, where that makes them more like a source.

        Args:
            other: With the same sources, and some of the targets.
            columns: Where those are here.
        """
        known = len(self.choices)
        for place, column in enumerate(columns):
            better = (other.error[:, place] < self.error[:, column]) & (self.layout[:, column] >= 0)
            self.error[better, column] = other.error[better, place]
            self.correlation[better, column] = other.correlation[better, place]
            moved = other.layout[better, place]
            self.layout[better, column] = np.where(moved < 0, -1, moved + known)
        self.choices = [*self.choices, *other.choices]


def compare_values(
    sources: Sequence[str],
    source: Callable[[str], Array],
    targets: Sequence[str],
    target: Callable[[str], Array],
    *,
    hidden: bool = True,
) -> Similarity:
    """Compare every tensor of one network with every tensor of another that can have its shape.

    A few thousand elements of each are looked at, the same ones in every layout.

    Args:
        sources: Names.
        source: Gives a value by its name.
        targets: Names.
        target: The same for the other network.
        hidden: Whether to look at what a tensor's norm hides, too. Not where values are in few bits: what a few large
            ones leave of the others is what was wanted.
    """
    size = (len(sources), len(targets))
    result = Similarity(np.full(size, np.inf), np.zeros(size), np.full(size, -1, np.int32), [], hidden)
    rows = _by_shape(sources, source)
    columns = _by_shape(targets, target)
    drawn: dict[int, npt.NDArray[np.int64]] = {}
    for source_shape, ours in rows.items():
        positions = drawn.setdefault(math.prod(source_shape), _draw(math.prod(source_shape)))
        left = _sampled(sources, source, ours, positions)
        for target_shape, theirs in columns.items():
            for layout in layouts(source_shape, target_shape):
                right = _sampled(targets, target, theirs, layout.positions(positions))
                _note(result, layout, ours, theirs, *_alike(left, right, hidden=hidden))
    return result


def _by_shape(names: Sequence[str], fetch: Callable[[str], Array]) -> Mapping[Shape, list[int]]:
    found: dict[Shape, list[int]] = {}
    for place, name in enumerate(names):
        found.setdefault(fetch(name).shape, []).append(place)
    return found


def _draw(size: int) -> npt.NDArray[np.int64]:
    if size <= _SAMPLED:
        return np.arange(size)
    return np.sort(np.random.default_rng(_SEED).choice(size, _SAMPLED, replace=False))


def _sampled(
    names: Sequence[str], fetch: Callable[[str], Array], places: Sequence[int], positions: npt.NDArray[np.int64]
) -> Matrix:
    return np.stack([fetch(names[place]).reshape(-1)[positions].astype(np.float64) for place in places])


def _alike(left: Matrix, right: Matrix, *, hidden: bool) -> tuple[Matrix, Matrix]:
    """Relative L2 of each row of `right` against each of `left`, and their correlation."""
    error, correlation = _whole(left, right)
    for row, values in enumerate(left if hidden else ()):
        finite = values[np.isfinite(values)]
        for body in bodies_of(values, float(np.sqrt(np.mean(np.square(finite)))) if finite.size else 0.0):
            inside = body.holds(values)
            error[row] = np.maximum(error[row], body.error(values, right))
            correlation[row] = np.minimum(correlation[row], _whole(values[None, inside], right[:, inside])[1][0])
    return error, correlation


def _whole(left: Matrix, right: Matrix) -> tuple[Matrix, Matrix]:
    """The same by all elements."""
    one, two = np.nan_to_num(left, posinf=0, neginf=0), np.nan_to_num(right, posinf=0, neginf=0)
    scale = max(float(np.abs(one).max(initial=0)), float(np.abs(two).max(initial=0))) or 1.0
    one, two = one / scale, two / scale
    squares, others = np.einsum("ik,ik->i", one, one), np.einsum("ik,ik->i", two, two)
    gap = np.maximum(squares[:, None] + others[None, :] - 2 * one @ two.T, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt(np.where(squares[:, None] > 0, gap / squares[:, None], np.where(others > 0, np.inf, 0.0)))
        centred, aside = one - one.mean(1, keepdims=True), two - two.mean(1, keepdims=True)
        spread = np.linalg.norm(centred, axis=1)[:, None] * np.linalg.norm(aside, axis=1)[None, :]
        correlation = np.where(spread > 1e-12, centred @ aside.T / spread, 0.0)
    broken = np.logical_xor.outer(~np.isfinite(left).all(1), ~np.isfinite(right).all(1))
    return np.where(broken, np.inf, error), correlation


def _note(
    result: Similarity,
    layout: Layout,
    ours: Sequence[int],
    theirs: Sequence[int],
    error: Matrix,
    correlation: Matrix,
) -> None:
    place = np.ix_(ours, theirs)
    better = (error < result.error[place]) | (result.layout[place] < 0)
    for matrix, values in ((result.error, error), (result.correlation, correlation)):
        matrix[place] = np.where(better, values, matrix[place])
    result.layout[place] = np.where(better, len(result.choices), result.layout[place])
    result.choices.append(layout)

"""Some elements of each tensor of a network, which stand for all of it; blocks of tensors compared by them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from conrepair.graph.layer_graph import Array
from conrepair.localization.layout import Layout, Shape, layouts
from conrepair.metrics.body import DenseElements, bodies_of

__all__ = ["Fetch", "Matrix", "Places", "SampleComparison", "Samples", "compare", "drawn", "positions_of"]

_SAMPLED = 4096  # elements of a tensor that stand for all of it
_SEED = 20261120
_CHUNK = 1 << 21  # elements at a time

Matrix = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
Fetch = Callable[[str], Array]


@functools.lru_cache(maxsize=256)
def drawn(size: int) -> Places:
    """Positions in a flat tensor of so many elements: all of a small one's, a few thousand of a large one's."""
    if size <= _SAMPLED:
        return np.arange(size)
    return np.sort(np.random.default_rng(_SEED).choice(size, _SAMPLED, replace=False))


@functools.lru_cache(maxsize=512)
def positions_of(layout: Layout) -> Places:
    """Where the elements that are drawn of a source's tensor lie in the target's."""
    return layout.positions(drawn(math.prod(layout.source)))


class Samples:
    """The tensors of one network.

    Attributes:
        names: Theirs.
        shapes: Theirs.
        by_shape: Places of the tensors of each shape, among the names.
    """

    def __init__(self, names: Sequence[str], fetch: Fetch) -> None:
        """Look at nothing but the shapes yet.

        Args:
            names: Of the tensors.
            fetch: Gives a value by its name.
        """
        self.names = names
        self.shapes: list[Shape] = [fetch(name).shape for name in names]
        self._fetch = fetch
        self._bodies: dict[int, tuple[DenseElements, ...]] = {}
        self.by_shape: Mapping[Shape, Places] = self.grouped(np.arange(len(names)))

    def grouped(self, places: Places) -> Mapping[Shape, Places]:
        """Some of the tensors, by their shapes."""
        found: dict[Shape, list[int]] = {}
        for place in places.tolist():
            found.setdefault(self.shapes[place], []).append(place)
        return {shape: np.array(members, np.int64) for shape, members in found.items()}

    def value(self, place: int) -> Array:
        """A whole tensor."""
        return self._fetch(self.names[place])

    def rows(self, places: Places, positions: Places) -> Matrix:
        """Elements of tensors of one size: [tensors, elements].

        Args:
            places: Of the tensors, among the names.
            positions: In the flat tensors.
        """
        found = np.empty((len(places), len(positions)))
        for row, place in enumerate(places.tolist()):
            found[row] = self.value(place).reshape(-1)[positions]
        return found

    def chunks(self, places: Places, positions: Places) -> Iterator[tuple[Places, Matrix]]:
        """The same, a bounded number of tensors at a time."""
        size = max(1, _CHUNK // max(len(positions), 1))
        for start in range(0, len(places), size):
            chosen = places[start : start + size]
            yield chosen, self.rows(chosen, positions)

    def bodies(self, place: int, values: Matrix) -> tuple[DenseElements, ...]:
        """What a tensor's norm hides, by its elements that are drawn.

        Args:
            place: Of the tensor.
            values: Those elements.
        """
        if place not in self._bodies:
            finite = values[np.isfinite(values)]
            rms = float(np.sqrt(np.mean(np.square(finite)))) if finite.size else 0.0
            self._bodies[place] = bodies_of(values, rms)
        return self._bodies[place]


@dataclass
class SampleComparison:
    """Some tensors of a source (down) with some of a target (across).

    Attributes:
        error: Relative L2 between the two in the best layout; infinite where no layout fits.
        correlation: Of the values in that layout, -1 to 1; 0 where it means nothing (constant values).
        layout: The best layout; indices into `choices`, -1 where none fits.
        choices: The layouts that occur.
    """

    error: Matrix
    correlation: Matrix
    layout: npt.NDArray[np.int32]
    choices: list[Layout]

    def best_layout(self, source: int, target: int) -> Layout | None:
        """The layout in which two tensors are most alike; None where none fits."""
        index = int(self.layout[source, target])
        return None if index < 0 else self.choices[index]

    def part(self, rows: Places, columns: Places) -> SampleComparison:
        """Some of the tensors only, by their places here."""
        chosen = np.ix_(rows, columns)
        return SampleComparison(self.error[chosen], self.correlation[chosen], self.layout[chosen], self.choices)


def compare(sources: Samples, ours: Places, targets: Samples, theirs: Places, *, hidden: bool) -> SampleComparison:
    """Compare tensors, each with each.

    A few thousand elements of each are looked at, the same ones in every layout.

    Args:
        sources: Of one network.
        ours: Places of its tensors.
        targets: Of the other.
        theirs: Places of its tensors.
        hidden: Whether to look at what a tensor's norm hides, too. Not where values are in few bits: what a few large
            ones leave of the others is what was wanted.
    """
    size = (len(ours), len(theirs))
    result = SampleComparison(np.full(size, np.inf), np.zeros(size), np.full(size, -1, np.int32), [])
    rows, columns = ({place: index for index, place in enumerate(side.tolist())} for side in (ours, theirs))
    others = targets.grouped(theirs)
    for source_shape, members in sources.grouped(ours).items():
        left: Matrix | None = None
        down = [rows[place] for place in members.tolist()]
        for target_shape, candidates in others.items():
            across = [columns[place] for place in candidates.tolist()]
            for layout in layouts(source_shape, target_shape):
                if left is None:
                    left = sources.rows(members, drawn(math.prod(source_shape)))
                right = targets.rows(candidates, positions_of(layout))
                bodies = (
                    [sources.bodies(*item) for item in zip(members.tolist(), left, strict=True)] if hidden else []
                )
                _note(result, layout, down, across, *_alike(left, right, bodies))
    return result


def _alike(left: Matrix, right: Matrix, bodies: Sequence[tuple[DenseElements, ...]]) -> tuple[Matrix, Matrix]:
    """Relative L2 of each row of `right` against each of `left`, and their correlation."""
    error, correlation = _whole(left, right)
    for row, found in enumerate(bodies):
        for body in found:
            values = left[row]
            inside = body.holds(values)
            error[row] = np.maximum(error[row], body.error(values, right))
            correlation[row] = np.minimum(correlation[row], _whole(values[None, inside], right[:, inside])[1][0])
    return error, correlation


def _whole(left: Matrix, right: Matrix) -> tuple[Matrix, Matrix]:
    """The same by all elements: ||x - y||^2 is that of what's around the means, and the square of their distance."""
    one, two = np.nan_to_num(left, posinf=0, neginf=0), np.nan_to_num(right, posinf=0, neginf=0)
    scale = max(float(np.abs(one).max(initial=0)), float(np.abs(two).max(initial=0))) or 1.0
    (centred, mean, own), (aside, other, own_aside) = _centred(one / scale), _centred(two / scale)
    product = centred @ aside.T
    count = left.shape[1]
    apart = own[:, None] + own_aside[None, :] - 2 * product
    gap = np.maximum(apart, 0) + count * np.square(mean[:, None] - other[None, :])
    squares, others = own + count * np.square(mean), own_aside + count * np.square(other)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt(np.where(squares[:, None] > 0, gap / squares[:, None], np.where(others > 0, np.inf, 0.0)))
        spread = np.sqrt(own)[:, None] * np.sqrt(own_aside)[None, :]
        correlation = np.where(spread > 1e-12, product / spread, 0.0)
    broken = np.logical_xor.outer(~np.isfinite(left).all(1), ~np.isfinite(right).all(1))
    return np.where(broken, np.inf, error), correlation


def _centred(rows: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """Rows around their means, the means, and the sums of squares around them."""
    mean = rows.mean(axis=1) if rows.shape[1] else np.zeros(len(rows))
    centred = rows - mean[:, None]
    return centred, mean, np.einsum("ik,ik->i", centred, centred)


def _note(
    result: SampleComparison,
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

"""Some elements of each tensor of a network, which stand for all of it; two tensors compared by them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from conrepair.diagnosis.localization.align.layout import Layout, Shape, layouts
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.metrics.body import DenseElements, bodies_of
from conrepair.ground.metrics.running_error import error_of, relative_l2

_SAMPLED = 4096  # elements of a tensor that stand for all of it
SEED = 20261120
_CONSTANT = 1e-12
_CHUNK = 1 << 21  # elements at a time

Matrix = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
Fetch = Callable[[str], Array]


@functools.lru_cache(maxsize=256)
def drawn(size: int) -> Places:
    """Positions in a flat tensor of so many elements: all of a small one's, a few thousand of a large one's."""
    if size <= _SAMPLED:
        return np.arange(size)
    return np.sort(np.random.default_rng(SEED).choice(size, _SAMPLED, replace=False))


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
        found: dict[Shape, list[int]] = {}
        for place, shape in enumerate(self.shapes):
            found.setdefault(shape, []).append(place)
        self.by_shape = {shape: np.array(members, np.int64) for shape, members in found.items()}

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


@dataclass(frozen=True)
class ComparedTensors:
    """Two tensors, by the elements that are drawn.

    Attributes:
        layout: The layout in which they are most alike; None where none fits.
        error: Relative L2 in that layout; infinite where none fits.
        correlation: Of the values in that layout, -1 to 1; 0 where it means nothing (constant values).
    """

    layout: Layout | None = None
    error: float = math.inf
    correlation: float = 0.0


def compare(sources: Samples, row: int, targets: Samples, column: int, *, hidden: bool) -> ComparedTensors:
    """Compare two tensors in each layout that fits.

    Args:
        sources: Of one network.
        row: Place of its tensor.
        targets: Of the other.
        column: Place of its tensor.
        hidden: Whether to look at what a tensor's norm hides, too. Not where values are in few bits: what a few large
            ones leave of the others is what was wanted.
    """
    measure = error_of if hidden else relative_l2
    found = ComparedTensors()
    (left,) = sources.rows(np.array([row]), drawn(math.prod(sources.shapes[row])))
    for layout in layouts(sources.shapes[row], targets.shapes[column]):
        (right,) = targets.rows(np.array([column]), positions_of(layout))
        error = measure(left, right)
        if found.layout is None or error < found.error:
            parts = [body.holds(left) for body in sources.bodies(row, left)] if hidden else []
            correlation = min(_correlation(left[part], right[part]) for part in (slice(None), *parts))
            found = ComparedTensors(layout, error, correlation)
    return found


def _correlation(left: Matrix, right: Matrix) -> float:
    """Of two rows; 0 where one is constant."""
    one, two = (np.nan_to_num(side, posinf=0, neginf=0) for side in (left, right))
    scale = max(float(np.abs(one).max(initial=0)), float(np.abs(two).max(initial=0))) or 1.0
    one, two = ((side - side.mean()) / scale if side.size else side for side in (one, two))
    spread = float(np.linalg.norm(one) * np.linalg.norm(two))
    return float(one @ two) / spread if spread > _CONSTANT else 0.0

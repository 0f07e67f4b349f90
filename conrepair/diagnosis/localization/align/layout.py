"""How the axes of one tensor lie in another: transposed, merged, split, with axes of length 1 more or less."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from conrepair.ground.graph.layer_graph import Array

_MOST_AXES = 5  # longer than 1 on a side; beyond that only what needs no transposition is tried
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Layout:
    """A map of a source's tensor to a target's: seen in another shape, transposed, and reshaped.

    Attributes:
        source: Shape in the source.
        view: Shape that the source is seen in before it's transposed.
        axes: Axes for the transposition of the view.
        target: Shape in the target.
    """

    source: Shape
    view: Shape
    axes: tuple[int, ...]
    target: Shape

    def to_target(self, array: Array) -> Array:
        """The source's tensor as the target has it; one whose size varies has another one in each batch."""
        if array.size != math.prod(self.source):
            return array.transpose(self.axes) if len(self.axes) == array.ndim else array
        return array.reshape(self.view).transpose(self.axes).reshape(self.target)

    def to_source(self, array: Array) -> Array:
        """The target's tensor as the source has it."""
        permuted = [self.view[axis] for axis in self.axes]
        if array.size != math.prod(self.source):
            return array.transpose(np.argsort(self.axes)) if len(self.axes) == array.ndim else array
        back = sorted(range(len(self.axes)), key=self.axes.__getitem__)
        return array.reshape(permuted).transpose(back).reshape(self.source)

    @property
    def is_plain(self) -> bool:
        """Whether the values lie in the same order in both."""
        return self.axes == tuple(sorted(self.axes))

    @property
    def splits_otherwise(self) -> bool:
        """Whether neither side's axes merge into the other's: the order of values is all that both have in common."""
        one, two = _long(self.source), _long(self.target)
        return self.is_plain and not _merges([*one], two) and not _merges([*two], one)

    @property
    def exchanges(self) -> bool:
        """Whether axes of a picture stand in each other's place, wherever the channels are."""
        if len(self.axes) < 4:
            return False
        far = (place for place in self.axes if abs(self.axes.index(place) - place) > 1)
        rests = [self.axes, *(tuple(axis for axis in self.axes if axis != place) for place in far)]
        return not any(rest == tuple(sorted(rest)) for rest in rests)

    def positions(self, flat: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Where elements lie in the flattened target.

        Args:
            flat: Positions in the flattened source.
        """
        coordinates = np.unravel_index(flat, self.view)
        permuted = tuple(self.view[axis] for axis in self.axes)
        return np.asarray(np.ravel_multi_index(tuple(coordinates[axis] for axis in self.axes), permuted))

    def __str__(self) -> str:
        """For a person."""
        if self.is_plain:
            return "as it is" if self.source == self.target else f"{list(self.source)} as {list(self.target)}"
        return f"{list(self.view)} transposed by {list(self.axes)}"


def lies_along(shape: Shape) -> tuple[int, ...]:
    """The axes of an operand that are longer than 1, from the end, as broadcasting counts them."""
    return tuple(place - len(shape) for place, size in enumerate(shape) if size > 1)


@functools.lru_cache(maxsize=4096)
def layouts(source: Shape, target: Shape) -> tuple[Layout, ...]:
    """All ways in which one shape can be another; the usual ones first.

    Shapes alone are ambiguous where sizes are equal: data must decide.

    Args:
        source: Shape of the source's tensor.
        target: Shape of the target's.
    """
    if math.prod(source) != math.prod(target):
        return ()
    one, two = _long(source), _long(target)
    if len(one) >= len(two):
        found = [Layout(source, one, axes, target) for axes in _transpositions(one, two)]
    else:
        # The target's axes, transposed back, merge into the source's.
        found = []
        for axes in _transpositions(two, one):
            view = tuple(two[axis] for axis in axes)
            back = tuple(sorted(range(len(axes)), key=axes.__getitem__))
            found.append(Layout(source, view, back, target))
    if not found:
        found = [Layout(source, one, tuple(range(len(one))), target)]  # the same order, whatever the shapes
    return tuple(dict.fromkeys(sorted(found, key=_usual)))


def _long(shape: Shape) -> Shape:
    return tuple(size for size in shape if size != 1) or (1,)


def _transpositions(finer: Shape, coarser: Shape) -> Iterator[tuple[int, ...]]:
    """The orders of the finer axes in which neighbours merge into the coarser ones."""
    identity = tuple(range(len(finer)))
    orders = itertools.permutations(identity) if len(finer) <= _MOST_AXES else iter([identity])
    for axes in orders:
        if _merges([finer[axis] for axis in axes], coarser):
            yield axes


def _merges(finer: list[int], coarser: Shape) -> bool:
    sizes = iter(coarser)
    wanted, product = next(sizes, 1), 1
    for size in finer:
        product *= size
        if product == wanted:
            wanted, product = next(sizes, 1), 1
        elif not product or wanted % product:  # a size of 0 merges into nothing but 0
            return False
    return product == 1 and next(sizes, None) is None and wanted == 1


def _usual(layout: Layout) -> tuple[int, int]:
    """As it is, then one axis moved far (channels first or last), then others, then a new shape of the same order."""
    rank = len(layout.axes)
    if layout.is_plain:
        return (0, 0) if _long(layout.source) == _long(layout.target) else (3, 0)
    for place in range(rank):
        rest = [axis for axis in layout.axes if axis != place]
        if rest == sorted(rest):
            return (1, -abs(layout.axes.index(place) - place))
    return (2, 0)

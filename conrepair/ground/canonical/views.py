"""Tensors as views: the numbers of a value, seen in another order and shape, with nothing moved."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Shape = tuple[int, ...]
Atoms = tuple[tuple[int, int], ...]


@dataclass(frozen=True, order=True)
class View:
    """The numbers of a value in some order.

    Attributes:
        value: Number of the value, whose numbers lie in a row.
        atoms: Size and stride in that row, from the outermost on; none can be joined with the next one, and none has
            the size 1, so that two views are equal if they have the same numbers at the same places.
        shape: Of the tensor.
    """

    value: int
    atoms: Atoms
    shape: Shape

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return math.prod(self.shape)

    @property
    def is_plain(self) -> bool:
        """Whether the numbers lie as they do in the value."""
        return len(self.atoms) <= 1

    def reshaped(self, shape: Shape) -> View:
        """The same numbers in another shape."""
        return View(self.value, self.atoms, shape)

    def of(self, value: int) -> View:
        """The same view of another value of as many numbers."""
        return View(value, self.atoms, self.shape)

    def axes(self) -> tuple[Atoms, ...] | None:
        """The atoms of each axis; none of an axis of size 1. None where an atom doesn't end where an axis does."""
        left, found = list(self.atoms), []
        for size in self.shape:
            own: list[tuple[int, int]] = []
            while size > 1:
                if not left:
                    return None
                extent, stride = left.pop(0)
                if extent > size:
                    if extent % size:
                        return None
                    # The axis has the outer part of the atom, the next axes the inner one.
                    inner = extent // size
                    left.insert(0, (inner, stride))
                    extent, stride = size, stride * inner
                elif not extent or size % extent:
                    return None
                own.append((extent, stride))
                size //= extent
            found.append(tuple(own))
        return tuple(found)

    def transposed(self, perm: Sequence[int]) -> View | None:
        """With its axes in another order; None where `axes` is None."""
        axes = self.axes()
        if axes is None:
            return None
        atoms = _joined(atom for axis in perm for atom in axes[axis])
        return View(self.value, atoms, tuple(self.shape[axis] for axis in perm))

    def resized(self, value: int, axis: tuple[int, int], size: int) -> View | None:
        """The same view of a value that has another size along one axis.

        Args:
            value: The other one.
            axis: Size and stride of the axis in this one.
            size: That it has there.

        Returns:
            None where that's no axis of the view.
        """
        (extent, stride), axes = axis, self.axes()
        if axes is None or [atoms for atoms in axes if axis in atoms] != [(axis,)]:
            return None
        atoms = _joined(
            (size, stride) if atom == axis else (atom[0], atom[1] // extent * size if atom[1] > stride else atom[1])
            for own in axes
            for atom in own
        )
        shape = (size if own == (axis,) else had for own, had in zip(axes, self.shape, strict=True))
        return View(value, atoms, tuple(shape))


def whole(value: int, shape: Shape) -> View:
    """A value as it lies."""
    return View(value, _joined([(math.prod(shape), 1)]), shape)


def aligned(view: View, shape: Shape) -> tuple[int | None, ...] | None:
    """Which axis of a value each axis of a view is.

    Args:
        view: Of the value.
        shape: Of the value.

    Returns:
        For each of the view's axes, in order; None for one of size 1. None if one is no single axis of the value, or
        they aren't all of it.
    """
    axes = view.axes()
    if axes is None or view.size != math.prod(shape):
        return None
    strides = {axis_of(shape, axis): axis for axis, size in enumerate(shape) if size > 1}
    if any(atoms and (len(atoms) > 1 or atoms[0] not in strides) for atoms in axes):
        return None
    return tuple(strides[atoms[0]] if atoms else None for atoms in axes)


def axis_of(shape: Shape, axis: int) -> tuple[int, int]:
    """Size and stride of an axis."""
    return shape[axis], math.prod(shape[axis + 1 :])


def channels_first(rank: int) -> tuple[int, ...]:
    """The order of axes by which channels that are last come behind the batch."""
    return 0, rank - 1, *range(1, rank - 1)


def channels_last(rank: int) -> tuple[int, ...]:
    """The axes' order that moves the channels to the end."""
    return 0, *range(2, rank), 1


def _joined(atoms: Iterable[tuple[int, int]]) -> Atoms:
    found: list[tuple[int, int]] = []
    for size, stride in atoms:
        if size > 1 and found and found[-1][1] == size * stride:
            found[-1] = (found[-1][0] * size, stride)
        elif size != 1:
            found.append((size, stride))
    return tuple(found)

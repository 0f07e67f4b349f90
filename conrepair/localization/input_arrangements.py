"""The ways in which a captured array may have been turned into one of another shape."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["MOST_CHANNELS", "Arranged", "arrangements"]

MOST_CHANNELS = 4
"""An axis of at most so many elements may be that of the colours."""

_MOST_AXES = 5


@dataclass(frozen=True)
class Arranged:
    """An array with its axes as another has them.

    Attributes:
        axes: For numpy.transpose.
        reshaped: Whether it was then reshaped, so that values stand at wrong places.
        flipped: Axes of the result along which it's reversed.
        array: The result.
    """

    axes: tuple[int, ...]
    reshaped: bool
    flipped: tuple[int, ...]
    array: npt.NDArray[np.float64]

    @property
    def words(self) -> list[str]:
        """What was done, in words."""
        steps = []
        if self.axes != tuple(range(len(self.axes))):
            steps.append(f"axes in the order {list(self.axes)}")
        if self.reshaped:
            steps.append(f"reshaped to {list(self.array.shape)} without moving values")
        if self.flipped:
            steps.append(f"reversed along axes {list(self.flipped)}")
        return steps


def arrangements(source: npt.NDArray[np.float64], shape: tuple[int, ...]) -> Iterator[Arranged]:
    """An array in every order of its axes that has a shape, flipped, and reshaped; simple ones first.

    Args:
        source: Samples first.
        shape: Wanted.
    """
    if source.ndim != len(shape) or source.ndim > _MOST_AXES or source[0].size != math.prod(shape[1:]):
        return
    identity = tuple(range(source.ndim))
    orders = [(0, *order) for order in itertools.permutations(identity[1:])]
    orders.sort(key=lambda order: sum(map(int.__ne__, order, identity)))
    fitting = [axes for axes in orders if tuple(source.shape[axis] for axis in axes) == shape]
    for axes in fitting:
        yield Arranged(axes, False, (), source.transpose(axes))
    pictures = tuple(axis for axis in range(1, source.ndim) if shape[axis] > MOST_CHANNELS)
    if source.ndim == 4 and len(pictures) >= 2:
        height, width = pictures[-2:]
        for axes, flipped in itertools.product(fitting, ((width,), (height,), (height, width))):
            yield Arranged(axes, False, flipped, np.flip(source.transpose(axes), flipped))
    for axes in orders:
        # Values in another layout's order under this shape: what a reshape in place of a transpose gives.
        if axes not in fitting:
            yield Arranged(axes, True, (), source.transpose(axes).reshape(shape))

"""Parameters whose numbers a file has in another order: one description of it, to read them and to write them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from conrepair.ground.graph.layer_graph import Array, Parameter


@dataclass(frozen=True)
class StoredParameter(Parameter):
    """A parameter, and how it's made of the arrays that a file has.

    Attributes:
        arrange: Makes it of these arrays: moves their numbers, and may put zeros between them. None for one array as
            it is.
        shapes: Of these arrays.
        holders: What has them: a framework's variables, or the place of the operator's input that reads them.
    """

    arrange: Callable[..., Array] | None = field(default=None, repr=False, compare=False)
    shapes: tuple[tuple[int, ...], ...] = field(default=(), repr=False, compare=False)
    holders: tuple[Any, ...] = field(default=(), repr=False, compare=False)

    def as_stored(self, array: Array) -> list[Array]:
        """The file's arrays that mean these numbers.

        Args:
            array: In the vocabulary's convention. Where a recurrent layer has one bias and not two, their sum counts.

        Raises:
            ValueError: if it's of another shape.
        """
        if array.shape != self.shape:
            raise ValueError(f"of shape {self.shape}, not of shape {array.shape}")
        if self.arrange is None:
            return [array]
        counts = [math.prod(shape) for shape in self.shapes]
        order = np.split(np.arange(1, sum(counts) + 1), np.cumsum(counts)[:-1])
        places = self.arrange(*(piece.reshape(shape) for piece, shape in zip(order, self.shapes, strict=True)))
        held = places > 0
        if not held.all():
            first, second = np.split(array, 2, -1)
            array = np.concatenate([first + second, second], -1)
        numbers = np.empty(sum(counts), array.dtype)
        numbers[places[held] - 1] = array[held]
        parts = np.split(numbers, np.cumsum(counts)[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True)]


def stored_parameter(
    name: str,
    dtype: str,
    read: Callable[[], Sequence[Array]],
    shapes: Sequence[Sequence[int]],
    arrange: Callable[..., Array] | None = None,
    **more: Any,
) -> StoredParameter:
    """A parameter as its file has it.

    Args:
        name: As in the file.
        dtype: Of the numbers there.
        read: The file's arrays.
        shapes: Of these.
        arrange: See `StoredParameter`.
        more: Other fields.
    """
    arranged = arrange or _same
    known = tuple(tuple(map(int, shape)) for shape in shapes)
    blank = [np.broadcast_to(np.float32(0), shape) for shape in known]  # takes no memory

    def load() -> Array:
        return np.asarray(arranged(*read()), order="C")

    return StoredParameter(name, arranged(*blank).shape, dtype, load, **more, arrange=arrange, shapes=known)


def _same(array: Array) -> Array:
    return array

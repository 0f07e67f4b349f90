"""What flows along the edges of the graph while it is imported.

A value is one of three things: a `ImportedTensor` that the Keras model computes, a numpy array that is known now
(weights, folded constants), or a numpy array of dtype object whose elements are sizes that are known only by
name (what `Shape` gives for a symbolic batch), as sympy expressions.

A `ImportedTensor` remembers in which order its axes are stored, so that the transposes between ONNX's channels-first
and Keras's channels-last layout are written only where somebody needs the other order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import sympy

Array: TypeAlias = npt.NDArray[Any]
Size: TypeAlias = Any
"""An int, or a sympy expression of named sizes."""


DTYPES = frozenset(
    ["bool", "float16", "bfloat16", "float32", "float64"]
    + [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
)
"""Element types that Keras computes in."""


@dataclass(frozen=True)
class ImportedTensor:
    """A tensor of the Keras model.

    Attributes:
        stored: The symbolic Keras tensor.
        order: For each axis as ONNX counts them, the axis of `stored` where it lies.
        shape: Sizes in ONNX's order.
    """

    stored: Any
    order: tuple[int, ...]
    shape: tuple[Size, ...]

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.order)

    @property
    def dtype(self) -> str:
        """Keras's name of the element type."""
        return str(self.stored.dtype)

    def transposed(self, axes: Sequence[int]) -> ImportedTensor:
        """What ONNX's Transpose gives: nothing moves, axes are only counted in another order."""
        return ImportedTensor(
            self.stored, tuple(self.order[axis] for axis in axes), tuple(self.shape[axis] for axis in axes)
        )


Value: TypeAlias = ImportedTensor | Array


def channels_last(rank: int) -> tuple[int, ...]:
    """The order in which [N, C, spatial...] is stored as [N, spatial..., C]."""
    return (0, rank - 1, *range(1, rank - 1)) if rank > 1 else tuple(range(rank))


def inverse(order: Sequence[int]) -> tuple[int, ...]:
    """The axes in the order of the places where they lie."""
    return tuple(sorted(range(len(order)), key=order.__getitem__))


def is_symbolic(value: object) -> bool:
    """Whether a value consists of sizes, some of which are known by name only."""
    return isinstance(value, np.ndarray) and value.dtype == object


def symbol(name: str) -> Any:
    """A size known by name."""
    return sympy.Symbol(name, integer=True, nonnegative=True)


def known(size: Size) -> bool:
    """Whether a size is a number."""
    return isinstance(size, int | np.integer | sympy.Integer)

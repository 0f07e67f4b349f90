"""What is known of a tensor before anything is computed: its type, and which values it may have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import helper

from conrepair_lab.generate.settings.expressions import Number, Unknown, product, value_of

FLOATS = ("float32", "float16", "float64")
INTEGERS = ("int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64")
BOOL = ("bool",)
REALS = (*FLOATS, "bfloat16")
"""With the one that ONNX Runtime's processor moves and converts, but hardly computes with."""

NUMERIC = REALS + INTEGERS


class TensorType(NamedTuple):
    """Element type, as NumPy calls it, and sizes: expressions if they aren't known yet, None if values decide."""

    dtype: str
    shape: tuple[Number, ...]

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def elements(self) -> Number:
        """How many there are; sizes that depend on values count as 1."""
        return product(1 if size is None else size for size in self.shape)

    def describes(self, dtype: str, shape: tuple[int, ...]) -> bool:
        """Whether an array is of this type."""
        if self.dtype != dtype or len(self.shape) != len(shape):
            return False
        return all(own is None or own == size for own, size in zip(self.shape, shape, strict=True))

    @property
    def sized(self) -> bool:
        """Whether no size depends on values."""
        return None not in self.shape


@dataclass(frozen=True)
class Range:
    """Values that a tensor must have, both ends included, or no operator may read it there.

    Attributes:
        low: Smallest; a number for each place along the last axis, or one for all.
        high: Largest, in the same way.
        distinct: No value twice along an axis.
        ascending: Sorted along the last axis.
        overall: Distinct, and sorted, along all axes at once.
        whole: No fractions.
        without: Values that it must not have.
        axis: Along which values are distinct.
        rows: Nothing along the last axis twice.
    """

    low: Number | tuple[Number, ...]
    high: Number | tuple[Number, ...]
    distinct: bool = False
    ascending: bool = False
    overall: bool = False
    whole: bool = False
    without: tuple[int, ...] = ()
    axis: int = -1
    rows: bool = False

    def allows(self, array: np.ndarray[Any, Any]) -> bool:
        """Whether a constant has such values."""
        inside = not array.size or bool(((np.asarray(self.low) <= array) & (array <= np.asarray(self.high))).all())
        if self.rows and array.size:
            rows = array.reshape(-1, array.shape[-1])
            inside &= len(np.unique(rows, axis=0)) == len(rows)
        return inside and not np.isin(array, self.without).any()

    def solved(self, values: Mapping[Unknown, int]) -> Range:
        """With numbers in the places of unknowns."""
        low, high = (
            tuple(value_of(item, values) for item in bound) if isinstance(bound, tuple) else value_of(bound, values)
            for bound in (self.low, self.high)
        )
        return replace(self, low=low, high=high)


def value_in(array: np.ndarray[Any, Any]) -> Any:
    """A constant as specifications have it: a number, or a tuple of what lists have."""
    value = array.tolist()
    return tuple(value) if isinstance(value, list) else value


@cache
def element_type(dtype: str) -> int:
    """ONNX's number of a type."""
    return int(
        onnx.TensorProto.DataType.Value(
            {"bool": "BOOL", "float32": "FLOAT", "float64": "DOUBLE"}.get(dtype, dtype.upper())
        )
    )


@cache
def numpy_type(dtype: str) -> np.dtype[Any]:
    """NumPy's type, or that of ml_dtypes."""
    found: np.dtype[Any] = np.dtype(helper.tensor_dtype_to_np_dtype(element_type(dtype)))
    return found


@cache
def in_schema(text: str) -> str | None:
    """The type that a schema means by "tensor(float)"; None for what isn't a tensor of numbers."""
    inner = text.removeprefix("tensor(").removesuffix(")")
    if inner == text or inner == "string" or inner.startswith("complex"):
        return None
    return {"float": "float32", "double": "float64"}.get(inner, inner)

"""What a tensor is: name, shape, element type; how integers stand for real numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from conrepair.ground.runtime.errors import DataError

FEW_DIGITS = {
    "bfloat16": 2.0**-7,
    "float8_e4m3fn": 2.0**-3,
    "float8_e4m3fnuz": 2.0**-3,
    "float8_e5m2": 2.0**-2,
    "float8_e5m2fnuz": 2.0**-2,
    "float4_e2m1fn": 2.0**-1,
}
"""Real types that numpy hasn't, and the relative distance of neighbours."""

NARROW_INTEGERS = frozenset({"int4", "uint4"})

Dimension = int | str
"""A number, or the name of a symbolic dimension ("batch"; "?" when the file doesn't name it)."""


def shape_of(sizes: Iterable[int | None]) -> tuple[Dimension, ...]:
    """A shape as a file says it: an open first axis is the batch, any other has no name.

    Args:
        sizes: None, or a negative number, where it's open.
    """
    return tuple(
        ("?" if place else "batch") if size is None or size < 0 else int(size) for place, size in enumerate(sizes)
    )


@dataclass(frozen=True)
class Quantization:
    """Affine quantization of a tensor: real = scale * (stored - zero_point)."""

    scale: float
    zero_point: int


@dataclass(frozen=True)
class SizeRange:
    """The sizes that a symbol may stand for.

    Attributes:
        symbol: As shapes call it.
        low: The smallest.
        high: The largest; None for any.
    """

    symbol: str
    low: int = 1
    high: int | None = None


@dataclass(frozen=True)
class TensorSpec:
    """An input or output of a model.

    Attributes:
        name: As the framework calls it.
        shape: Dimensions, with the batch where the model has one, on whichever axis.
        dtype: numpy's name of the element type ("string" for text).
        quantization: For an integer tensor that stands for real numbers.
        layout: "NCHW" or "NHWC" when it's declared.
        high: For integer inputs, the size of the table they index, where known.
        ranges: Of the symbols in the shape, where the file states them.
        sample_axis: That the samples lie along, where that's declared, or another model says it; None: the shape has
            to tell (`conrepair.ground.data.sample_axes`).
        keys: What the last axis stands for, where the file has a map in its place.
    """

    name: str
    shape: tuple[Dimension, ...]
    dtype: str
    quantization: Quantization | None = None
    layout: str | None = None
    high: int | None = None
    ranges: tuple[SizeRange, ...] = ()
    sample_axis: int | None = None
    keys: tuple[int | str, ...] = ()

    @property
    def is_float(self) -> bool:
        """Whether the element type is a floating point one."""
        return self.dtype == "bfloat16" or self.dtype.startswith("float")

    @property
    def stands_for_reals(self) -> bool:
        """Whether values are real numbers, stored as floats or quantized."""
        return self.is_float or self.quantization is not None

    def __str__(self) -> str:
        """For messages: name: dtype[shape]."""
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"


def merge_declared(inputs: Sequence[TensorSpec], declared: Sequence[TensorSpec]) -> tuple[TensorSpec, ...]:
    """Fill in what a person declares about inputs that a file leaves open; one symbol is one size in all of them.

    Args:
        inputs: As the file says.
        declared: With names, or in order where the name is "".

    Raises:
        DataError: if a declaration fits no input.
    """
    result = list(inputs)
    settled: dict[str, int] = {}
    for position, wanted in enumerate(declared):
        matches = [
            index
            for index, spec in enumerate(inputs)
            if wanted.name == spec.name or (not wanted.name and index == position)
        ]
        listing = "; ".join(map(str, inputs))
        if not matches:
            raise DataError(f"the declared input {wanted.name or position} doesn't exist; the model has {listing}.")
        spec = inputs[matches[0]]
        if len(wanted.shape) != len(spec.shape) or any(
            isinstance(fixed, int) and isinstance(size, int) and fixed != size
            for fixed, size in zip(spec.shape, wanted.shape, strict=True)
        ):
            raise DataError(f"the declared shape {list(wanted.shape)} doesn't fit input {spec}.")
        pairs = list(zip(spec.shape, wanted.shape, strict=True))
        settled |= {str(own): size for own, size in pairs if isinstance(own, str) and isinstance(size, int)}
        shape = tuple(own if isinstance(own, int) else size for own, size in pairs)
        result[matches[0]] = replace(
            spec,
            shape=shape,
            layout=wanted.layout or spec.layout,
            high=wanted.high or spec.high,
            sample_axis=_declared_axis(pairs, spec.sample_axis),
        )
    settled.pop("?", None)  # stands for a size of its own wherever it is
    return tuple(
        replace(spec, shape=tuple(settled.get(size, size) if isinstance(size, str) else size for size in spec.shape))
        for spec in result
    )


def _declared_axis(pairs: Sequence[tuple[Dimension, Dimension]], known: int | None) -> int | None:
    """The axis whose fixed size a person calls the batch."""
    called = (place for place, (own, size) in enumerate(pairs) if size == "batch" and isinstance(own, int))
    return next(called, known)


@lru_cache(64)
def numpy_dtype(name: str) -> np.dtype[Any]:
    """The numpy dtype of a spec's dtype name, those of ml_dtypes (bfloat16, float8_e5m2, int4) included."""
    if name in FEW_DIGITS or name in NARROW_INTEGERS:
        import ml_dtypes

        known: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return known
    dtype: np.dtype[Any] = np.dtype(object if name == "string" else name)
    return dtype

"""What a tensor is: name, shape, element type; how integers stand for real numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from conrepair.runtime.errors import DataError

__all__ = [
    "Dimension",
    "Quantization",
    "SizeRange",
    "TensorSpec",
    "has_batch",
    "merge_declared",
    "numpy_dtype",
    "with_declared_sizes",
]

Dimension = int | str
"""A number, or the name of a symbolic dimension ("batch"; "?" when the file doesn't name it)."""


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
        shape: Dimensions, with the batch where the model has one.
        dtype: numpy's name of the element type ("string" for text).
        quantization: For an integer tensor that stands for real numbers.
        layout: "NCHW" or "NHWC" when it's declared.
        high: For integer inputs, the size of the table they index, where known.
        ranges: Of the symbols in the shape, where the file states them.
    """

    name: str
    shape: tuple[Dimension, ...]
    dtype: str
    quantization: Quantization | None = None
    layout: str | None = None
    high: int | None = None
    ranges: tuple[SizeRange, ...] = ()

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


def has_batch(inputs: Sequence[TensorSpec]) -> bool:
    """Whether the first axis of every input is the batch: all symbolic, or all of one size."""
    sizes = {spec.shape[0] if spec.shape else None for spec in inputs}
    return None not in sizes and (len(sizes) == 1 or all(isinstance(size, str) for size in sizes))


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
            spec, shape=shape, layout=wanted.layout or spec.layout, high=wanted.high or spec.high
        )
    settled.pop("?", None)  # stands for a size of its own wherever it is
    return tuple(
        replace(spec, shape=tuple(settled.get(size, size) if isinstance(size, str) else size for size in spec.shape))
        for spec in result
    )


def with_declared_sizes(inputs: Sequence[TensorSpec], declared: Sequence[TensorSpec]) -> tuple[TensorSpec, ...]:
    """Inputs whose symbolic sizes behind the batch are set to what is declared in the same place.

    For trying a model out: names may differ, and what doesn't fit is left as it is.

    Args:
        inputs: As the file says.
        declared: In order; maybe of the model that this one was converted from.
    """
    if len(inputs) != len(declared) or any(
        len(spec.shape) != len(other.shape) for spec, other in zip(inputs, declared, strict=True)
    ):
        return tuple(inputs)
    return tuple(
        replace(
            spec,
            shape=tuple(
                wanted if axis and isinstance(size, str) and isinstance(wanted, int) else size
                for axis, (size, wanted) in enumerate(zip(spec.shape, other.shape, strict=True))
            ),
        )
        for spec, other in zip(inputs, declared, strict=True)
    )


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The numpy dtype of a spec's dtype name, bfloat16 included."""
    if name == "bfloat16":
        import ml_dtypes

        name = ml_dtypes.bfloat16.__name__  # registered with numpy by the import
    dtype: np.dtype[Any] = np.dtype(object if name == "string" else name)
    return dtype

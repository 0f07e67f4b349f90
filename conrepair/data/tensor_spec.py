"""What a tensor is: name, shape, element type; how integers stand for real numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Dimension", "Quantization", "TensorSpec", "numpy_dtype"]

Dimension = int | str
"""A number, or the name of a symbolic dimension ("batch"; "?" when the file doesn't name it)."""


@dataclass(frozen=True)
class Quantization:
    """Affine quantization of a tensor: real = scale * (stored - zero_point)."""

    scale: float
    zero_point: int


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
    """

    name: str
    shape: tuple[Dimension, ...]
    dtype: str
    quantization: Quantization | None = None
    layout: str | None = None
    high: int | None = None

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


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The numpy dtype of a spec's dtype name, bfloat16 included."""
    if name == "bfloat16":
        import ml_dtypes

        name = ml_dtypes.bfloat16.__name__  # registered with numpy by the import
    dtype: np.dtype[Any] = np.dtype(object if name == "string" else name)
    return dtype

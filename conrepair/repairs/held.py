"""Numbers in the type that a target stores them in."""

from __future__ import annotations

import numpy as np

from conrepair.data.tensor_spec import numpy_dtype
from conrepair.graph.layer_graph import Array

__all__ = ["as_held"]


def as_held(values: Array, dtype: str) -> Array:
    """One number that isn't zero as the nearest that isn't zero either, in a narrower type; others as they are.

    An epsilon of 1e-8 is 0 in float16, and divides nothing by nothing.

    Args:
        values: Of any shape.
        dtype: Of the target's file: "float16".
    """
    if values.size != 1 or values.dtype.kind != "f" or dtype != "float16" or not values.any():
        return values
    with np.errstate(over="ignore"):
        stored = values.astype(numpy_dtype(dtype))
    if stored.any():
        return values
    least = np.copysign(np.finfo(np.float16).smallest_subnormal, values)
    return np.asarray(least, values.dtype).reshape(values.shape)

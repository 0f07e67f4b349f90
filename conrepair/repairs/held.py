"""Numbers for what a target holds, in its shape and type."""

from __future__ import annotations

import math

import numpy as np

from conrepair.data.tensor_spec import numpy_dtype
from conrepair.graph.layer_graph import Array, Node
from conrepair.repairs.edits import SetParameter

__all__ = ["as_held", "set_to"]


def set_to(place: Node | None, role: str, values: Array) -> SetParameter | None:
    """Other numbers for a node.

    Args:
        place: In the editor's graph; None where that has no such node.
        role: Of the parameter.
        values: As many, of any shape.

    Returns:
        None where there's nothing that can hold them.
    """
    held = None if place is None else place.parameters.get(role)
    if place is None or held is None or values.size != math.prod(held.shape):
        return None
    # Not NumPy's contiguous copy, which gives a number an axis.
    return SetParameter(place.name, role, as_held(np.asarray(values.reshape(held.shape), order="C"), held.dtype))


def as_held(values: Array, dtype: str) -> Array:
    """One number that isn't zero, and finite ones, as the nearest that are so in a narrower type; others as they are.

    An epsilon of 1e-8 is 0 in float16, and divides nothing by nothing; a mask's -3.4e38 is infinite, and a row of it
    no number behind a softmax.

    Args:
        values: Of any shape.
        dtype: Of the target's file: "float16".
    """
    if values.dtype.kind != "f" or dtype != "float16" or not values.any():
        return values
    largest = np.finfo(np.float16).max
    if np.abs(values, where=np.isfinite(values), out=np.zeros_like(values)).max() > largest:
        return np.where(np.isfinite(values), values.clip(-largest, largest), values).astype(values.dtype)
    if values.size != 1:
        return values
    with np.errstate(over="ignore"):
        stored = values.astype(numpy_dtype(dtype))
    if stored.any():
        return values
    least = np.copysign(np.finfo(np.float16).smallest_subnormal, values)
    return np.asarray(least, values.dtype).reshape(values.shape)

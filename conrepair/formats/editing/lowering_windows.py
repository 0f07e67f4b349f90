"""Pads of windows as operators of their own, for formats whose windows have none."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from conrepair.formats.editing.operation import Operation, Sizes
from conrepair.ground.graph.layer_graph import Array, Attribute

POOLS = ("MaxPool", "AveragePool")
GLOBAL_POOLS = ("ReduceMax", "ReduceMean")  # of everything
WINDOWS = ("Conv", "ConvTranspose", *POOLS)
_LEAST = float(np.finfo(np.float32).min)


def window_of(operation: Operation, name: str, usual: int) -> tuple[int, ...]:
    """An attribute with an entry for each spatial axis; `pads` have two.

    Args:
        operation: With a window.
        name: Of the attribute.
        usual: The entries where nothing is said.
    """
    value = operation.attributes.get(name)
    if isinstance(value, tuple):
        return tuple(int(item) for item in value)
    weight, kernel = operation.parameters.get("weight"), operation.attributes.get("kernel_shape")
    rank = weight.ndim - 2 if weight is not None else len(kernel) if isinstance(kernel, tuple) else 0
    return (usual,) * (2 * rank if name == "pads" else rank)


def is_dilated(operation: Operation) -> bool:
    """Whether a window leaves out places between its own."""
    return not set(window_of(operation, "dilations", 1)) <= {1}


def pads_of_all_axes(pads: Sequence[int], *, channels_last: bool) -> tuple[int, ...]:
    """Pads of a window's axes, as `Pad` has them: batch and channels too, which get none."""
    half = len(pads) // 2
    begins, ends = tuple(pads[:half]), tuple(pads[half:])
    return (0, *begins, 0, 0, *ends, 0) if channels_last else (0, 0, *begins, 0, 0, *ends)


def padded(operation: Operation, shapes: Sequence[Sizes | None]) -> tuple[Operation, ...] | None:
    """A window behind a Pad; None where there's nothing to pad, or the format's own pads can't be replaced.

    Args:
        operation: One of `WINDOWS`.
        shapes: Of its operands.
    """
    pads = window_of(operation, "pads", 0)
    if not any(pads) or operation.operator == "ConvTranspose" or operation.attributes.get("ceil_mode"):
        return None
    value = _LEAST if operation.operator == "MaxPool" else 0.0
    shape = shapes[0]
    counted = bool(operation.attributes.get("count_include_pad"))
    if operation.operator == "AveragePool" and not counted and (shape is None or None in _spatial(shape, operation)):
        return None
    attributes: dict[str, Attribute] = {**operation.attributes, "pads": (0,) * len(pads)}
    padding: dict[str, Attribute] = {
        "pads": pads_of_all_axes(pads, channels_last=operation.channels_last),
        "mode": "constant",
        "value": value,
    }
    inner = Operation(operation.operator, (1,), attributes, operation.parameters, operation.channels_last)
    front = Operation("Pad", (0,), padding), inner
    if operation.operator != "AveragePool" or counted:
        return front
    share = _share(operation, [int(size or 0) for size in _spatial(shape or (), operation)])
    share = share[..., None] if operation.channels_last else share
    return *front, Operation("Mul", (2,), {}, {"operand": share})


def _spatial(shape: Sizes, operation: Operation) -> Sizes:
    return shape[1:-1] if operation.channels_last else shape[2:]


def _share(operation: Operation, sizes: Sequence[int]) -> Array:
    """How many numbers a window has for each that isn't padding: what a mean over all of them lacks."""
    kernel, strides = window_of(operation, "kernel_shape", 1), window_of(operation, "strides", 1)
    pads = window_of(operation, "pads", 0)
    counts = np.ones((), np.float64)
    for axis, size in enumerate(sizes):
        begin, end = pads[axis], pads[len(sizes) + axis]
        valid = np.pad(np.ones(size), (begin, end))
        starts = range(0, size + begin + end - kernel[axis] + 1, strides[axis])
        counts = counts[..., None] * np.array([valid[start : start + kernel[axis]].sum() for start in starts])
    found: Array = (math.prod(kernel) / counts).astype(np.float32)
    return found

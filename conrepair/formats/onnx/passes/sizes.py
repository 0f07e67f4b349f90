"""Operators on sizes, in arrays of objects: whole numbers, and what stands for those that aren't known yet.

All that move sizes are here; how numbers are computed of others is up to those who say what stands for them.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir

from conrepair.ground.data.tensor_spec import TensorSpec


def declare_sizes(model: onnx_ir.Model, declared: Sequence[TensorSpec], batch: int | None = None) -> None:
    """Replace symbolic dimensions of inputs in place; where a symbol gets a number, it gets it everywhere.

    Args:
        model: Whose inputs are completed; shapes behind them are inferred anew.
        declared: Inputs in order, maybe of the model that this one was converted from; used when their number
            and ranks fit. The first dimension is left to `batch`.
        batch: For a symbolic first dimension; None leaves it.
    """
    inputs = [value for value in model.graph.inputs if not value.is_initializer()]
    fits = len(inputs) == len(declared) and all(
        value.shape is not None and len(value.shape) == len(spec.shape)
        for value, spec in zip(inputs, declared, strict=True)
    )
    sizes: dict[str, int] = {}
    for position, value in enumerate(inputs):
        if value.shape is None:
            continue
        shape = list(value.shape)
        for axis, size in enumerate(shape):
            if isinstance(size, int):
                continue
            given = declared[position].shape[axis] if fits and axis else batch if not axis else None
            if isinstance(given, int):
                shape[axis] = given
                if size.value is not None:
                    sizes[size.value] = given
        value.shape = onnx_ir.Shape(shape)
    for value in [*inputs, *model.graph.outputs]:
        if value.shape is not None:
            value.shape = onnx_ir.Shape(
                [size if isinstance(size, int) else sizes.get(str(size.value), size) for size in value.shape]
            )


Sizes = npt.NDArray[Any]
_INTEGERS = {6, 7}  # INT32, INT64, as ONNX numbers them


class NotKnownError(Exception):
    """What an operator computes depends on what isn't known."""


def integers(value: Any) -> list[int]:
    """Whole numbers of an array.

    Raises:
        NotKnownError: if one isn't known.
    """
    try:
        return [int(item) for item in np.reshape(value, -1)]
    except TypeError:
        raise NotKnownError from None


def each(function: Callable[..., Any]) -> Callable[..., Sizes]:
    """A function of numbers, as an operator: for all elements of operands, which are broadcast."""

    def apply(*operands: Sizes, **_: Any) -> Sizes:
        arrays = np.broadcast_arrays(*(np.asarray(item, dtype=object) for item in operands))
        result = np.empty(arrays[0].shape, dtype=object)
        flat = result.reshape(-1)
        for index, numbers in enumerate(zip(*(array.reshape(-1) for array in arrays), strict=True)):
            flat[index] = function(*numbers)
        return result

    return apply


def reduced(function: Callable[[Any, Any], Any]) -> Callable[..., Sizes]:
    """A function of two numbers, as a reduction of all elements of a vector."""

    def apply(value: Sizes, axes: Any = None, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Sizes:
        if value.ndim > 1 or (axes is not None and integers(axes) not in ([0], [-1])):
            raise NotKnownError
        if axes is None and noop_with_empty_axes:
            return value
        result = _single(functools.reduce(function, value.reshape(-1)))
        return result.reshape(1) if keepdims and value.ndim else result

    return apply


def quotient(one: Any, two: Any) -> Any:
    """A quotient as ONNX has it of whole numbers."""
    return -(-one // two) if bool(one < 0) != bool(two < 0) else one // two


def slice_of(start: int, end: int, step: int, size: int) -> slice:
    """What ONNX's Slice picks from an axis, as a slice of numbers within the axis.

    Two things differ from numpy: with a negative step a start in front of the axis is its first cell, and the largest
    int32 and int64 mean "to the end" whatever the direction.
    """
    lowest, highest = (-1, size - 1) if step < 0 else (0, size)
    first = min(max(start + size if start < 0 else start, 0), highest)
    if end in (2**31 - 1, 2**63 - 1):
        behind = lowest if step < 0 else size
    else:
        behind = min(max(end + size if end < 0 else end, lowest), size)
    if not range(first, behind, step):
        return slice(0, 0)
    if (first, behind, step) == (0, size, 1):
        return slice(None)
    return slice(first, None if behind in {lowest, size} else behind, step)


def _single(value: Any) -> Sizes:
    result = np.empty((), dtype=object)
    result[()] = value
    return result


def _cast(value: Sizes, to: int, **_: Any) -> Sizes:
    if to not in _INTEGERS:
        raise NotKnownError
    return each(lambda item: int(item) if isinstance(item, bool) else item)(value)


def _gather(value: Sizes, indices: Sizes, axis: int = 0) -> Sizes:
    places = np.reshape(np.array(integers(indices), np.int64), np.shape(indices))
    taken = np.take(value, places, axis=axis)
    return taken if isinstance(taken, np.ndarray) else _single(taken)


def _slice(value: Sizes, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Sizes:
    first, last = integers(starts), integers(ends)
    index = [slice(None)] * value.ndim
    places = range(len(first)) if axes is None else integers(axes)
    strides = [1] * len(first) if steps is None else integers(steps)
    for axis, start, end, step in zip(places, first, last, strides, strict=True):
        index[axis] = slice_of(start, end, step, value.shape[axis])
    return value[tuple(index)]


def _reshape(value: Sizes, shape: Sizes, allowzero: int = 0) -> Sizes:
    return value.reshape(
        [value.shape[axis] if size == 0 and not allowzero else size for axis, size in enumerate(integers(shape))]
    )


ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {"Add": operator.add, "Mul": operator.mul, "Sub": operator.sub}
"""What Python's operators compute of all that stands for numbers."""

MOVING: Mapping[str, Callable[..., Sizes]] = {
    "Cast": _cast,
    "Concat": lambda *values, axis: np.concatenate(values, axis=axis),
    "Expand": lambda value, shape: np.broadcast_to(value, np.broadcast_shapes(value.shape, tuple(integers(shape)))),
    "Gather": _gather,
    "Identity": lambda value: value,
    "Reshape": _reshape,
    "Slice": _slice,
    "Squeeze": lambda value, axes=None: np.squeeze(value, None if axes is None else tuple(integers(axes))),
    "Transpose": lambda value, perm=None: np.transpose(value, perm),
    "Unsqueeze": lambda value, axes: np.expand_dims(value, tuple(integers(axes))),
    "Where": each(lambda condition, one, two: one if condition else two),
}
"""By ONNX's names: of operands in its order and attributes by name."""

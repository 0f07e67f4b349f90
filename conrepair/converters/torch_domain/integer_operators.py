"""Operators that compute on sizes.

Integers travel between modules as numpy arrays of objects, so that numpy's rules of indexing and broadcasting,
which are ONNX's, apply to torch.export's symbols too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import torch
from torch import Tensor

__all__ = ["OPERATORS", "Integers", "backwards", "listed", "tensor_of"]

Integers = npt.NDArray[np.object_]


def listed(value: Any) -> list[Any]:
    """Integers of a vector, wherever they come from."""
    return list(value.reshape(-1)) if isinstance(value, np.ndarray) else [int(item) for item in value.reshape(-1)]


def _shape(tensor: Tensor, start: int = 0, end: int | None = None) -> Integers:
    sizes = list(tensor.shape)[start:end]
    result = np.empty(len(sizes), dtype=object)
    result[:] = sizes
    return result


def _size(tensor: Tensor) -> Integers:
    return _scalar(functools.reduce(lambda one, two: one * two, tensor.shape, 1))


def _scalar(value: Any) -> Integers:
    result = np.empty((), dtype=object)
    result[()] = value
    return result


def _each(function: Callable[..., Any]) -> Callable[..., Integers]:
    """A function of numbers, applied to all elements of operands that are broadcast."""

    def apply(*operands: Integers, **_: Any) -> Integers:
        shapes = np.broadcast_shapes(*(np.shape(item) for item in operands))
        broadcast = [np.broadcast_to(np.asarray(item, dtype=object), shapes).reshape(-1) for item in operands]
        result = np.empty(shapes, dtype=object)
        flat = result.reshape(-1)
        for index, numbers in enumerate(zip(*broadcast, strict=True)):
            flat[index] = function(*numbers)
        return result

    return apply


def _divide(one: Any, two: Any) -> Any:
    """Towards zero, as ONNX divides whole numbers."""
    return -(-one // two) if bool(one < 0) != bool(two < 0) else one // two


def _cast(value: Integers, to: int) -> Integers:
    return _each(bool if to == onnx.TensorProto.BOOL else _number)(value)


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value


def _gather(value: Integers, places: Integers, axis: int = 0) -> Integers:
    return _object(np.take(value, np.asarray(places, dtype=np.int64), axis=axis))


def _object(value: Any) -> Integers:
    return value if isinstance(value, np.ndarray) else _scalar(value)


def _concat(*values: Integers, axis: int) -> Integers:
    return np.concatenate(values, axis=axis)


def _slice_integers(
    value: Integers, starts: Integers, ends: Integers, axes: Integers | None = None, steps: Integers | None = None
) -> Integers:
    first, last = listed(starts), listed(ends)
    places = range(len(first)) if axes is None else listed(axes)
    strides = [1] * len(first) if steps is None else listed(steps)
    for start, end, axis, step in zip(first, last, places, strides, strict=True):
        selection: list[Any] = [slice(None)] * value.ndim
        selection[axis] = slice(start, end, step) if step > 0 else backwards(start, end, step, value.shape[axis])
        value = value[tuple(selection)]
    return value


def backwards(start: int, end: int, step: int, length: int) -> list[int]:
    """The positions that a Slice with a negative step takes; unlike Python's, it starts at 0 at the lowest."""
    first = min(max(start + length if start < 0 else start, 0), length - 1)
    last = min(max(end + length if end < 0 else end, -1), length - 1)
    return list(range(first, last, step))


def _squeeze_integers(value: Integers, axes: Integers | None = None) -> Integers:
    return np.squeeze(value, None if axes is None else tuple(listed(axes)))


def _unsqueeze_integers(value: Integers, axes: Integers) -> Integers:
    return np.expand_dims(value, tuple(listed(axes)))


def _transpose_integers(value: Integers, perm: Sequence[int] | None = None) -> Integers:
    return np.transpose(value, perm)


def _reshape_integers(value: Integers, shape: Integers, **_: Any) -> Integers:
    return value.reshape([int(size) for size in listed(shape)])


def _filled(shape: Integers, value: Tensor | None = None) -> Integers:
    number = 0 if value is None else value.item()
    return np.full([int(size) for size in listed(shape)], number, dtype=object)


def _expand_integers(value: Integers, shape: Integers) -> Integers:
    sizes = np.broadcast_shapes(value.shape, tuple(int(size) for size in listed(shape)))
    return np.broadcast_to(value, sizes)


def _range_integers(start: Integers, limit: Integers, delta: Integers) -> Integers:
    numbers = range(int(start.item()), int(limit.item()), int(delta.item()))
    return np.array(list(numbers), dtype=object)


def _reduced(function: Callable[[Any, Any], Any]) -> Callable[..., Integers]:
    def apply(value: Integers, axes: Any = None, keepdims: int = 1, **_: Any) -> Integers:
        del axes
        if value.ndim > 1:
            raise NotImplementedError("reducing a matrix of integers")
        result = functools.reduce(function, listed(value))
        return np.array([result], dtype=object) if keepdims and value.ndim else _scalar(result)

    return apply


def tensor_of(value: Integers, to: int) -> Tensor:
    """Make a tensor of integers or symbols.

    Args:
        value: The numbers.
        to: ONNX's number of the element type.
    """
    dtype = {onnx.TensorProto.BOOL: torch.bool, onnx.TensorProto.INT32: torch.int32}.get(to, torch.int64)
    numbers = listed(value)
    if all(isinstance(number, int) for number in numbers):
        return torch.tensor(numbers, dtype=dtype).reshape(value.shape)
    parts = [torch.full((), number, dtype=dtype) for number in numbers]
    return torch.stack(parts).reshape(value.shape) if value.ndim else parts[0]


OPERATORS: dict[str, Callable[..., Any]] = {
    "Abs": _each(abs),
    "Add": _each(lambda one, two: one + two),
    "And": _each(lambda one, two: one and two),
    "Cast": _cast,
    "Concat": _concat,
    "ConstantOfShape": _filled,
    "Div": _each(_divide),
    "Equal": _each(lambda one, two: bool(one == two)),
    "Expand": _expand_integers,
    "Gather": _gather,
    "Greater": _each(lambda one, two: bool(one > two)),
    "GreaterOrEqual": _each(lambda one, two: bool(one >= two)),
    "Identity": lambda value: value,
    "Less": _each(lambda one, two: bool(one < two)),
    "LessOrEqual": _each(lambda one, two: bool(one <= two)),
    "Max": _each(lambda *numbers: functools.reduce(torch.sym_max, numbers)),
    "Min": _each(lambda *numbers: functools.reduce(torch.sym_min, numbers)),
    "Mod": _each(lambda one, two: one % two),
    "Mul": _each(lambda one, two: one * two),
    "Neg": _each(lambda one: -one),
    "Not": _each(lambda one: not one),
    "Or": _each(lambda one, two: one or two),
    "Range": _range_integers,
    "ReduceMax": _reduced(torch.sym_max),
    "ReduceMin": _reduced(torch.sym_min),
    "ReduceProd": _reduced(lambda one, two: one * two),
    "ReduceSum": _reduced(lambda one, two: one + two),
    "Reshape": _reshape_integers,
    "Shape": _shape,
    "Size": _size,
    "Slice": _slice_integers,
    "Squeeze": _squeeze_integers,
    "Sub": _each(lambda one, two: one - two),
    "Transpose": _transpose_integers,
    "Unsqueeze": _unsqueeze_integers,
    "Where": _each(lambda condition, one, two: one if condition else two),
}

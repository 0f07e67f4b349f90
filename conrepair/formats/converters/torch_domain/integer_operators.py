"""Operators that compute on sizes.

Integers travel between modules as numpy arrays of objects, so that numpy's rules of indexing and broadcasting,
which are ONNX's, apply to torch.export's symbols too.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import torch
from torch import Tensor

from conrepair.formats.onnx.passes.sizes import ARITHMETIC, MOVING, Sizes, each, integers, quotient, reduced


def listed(value: Any) -> list[Any]:
    """Integers and symbols of a vector, wherever they come from."""
    return list(value.reshape(-1)) if isinstance(value, np.ndarray) else [int(item) for item in value.reshape(-1)]


def _shape(tensor: Tensor, start: int = 0, end: int | None = None) -> Sizes:
    sizes = list(tensor.shape)[start:end]
    result = np.empty(len(sizes), dtype=object)
    result[:] = sizes
    return result


def _filled(shape: Sizes, value: Tensor | None = None) -> Sizes:
    return np.full(integers(shape), 0 if value is None else value.item(), dtype=object)


def tensor_of(value: Sizes, to: int) -> Tensor:
    """Make a tensor of integers or symbols.

    Args:
        value: The numbers.
        to: ONNX's number of the element type.
    """
    dtype = {onnx.TensorProto.BOOL: torch.bool, onnx.TensorProto.INT32: torch.int32}.get(to, torch.int64)
    numbers = list(value.reshape(-1))
    if all(isinstance(number, int) for number in numbers):
        return torch.tensor(numbers, dtype=dtype).reshape(value.shape)
    parts = [torch.full((), number, dtype=dtype) for number in numbers]
    return torch.stack(parts).reshape(value.shape) if value.ndim else parts[0]


_NUMBERS: dict[str, Callable[..., Any]] = {
    **ARITHMETIC,
    "Abs": abs,
    "And": lambda one, two: one and two,
    "Div": quotient,
    "Equal": lambda one, two: bool(one == two),
    "Greater": lambda one, two: bool(one > two),
    "GreaterOrEqual": lambda one, two: bool(one >= two),
    "Less": lambda one, two: bool(one < two),
    "LessOrEqual": lambda one, two: bool(one <= two),
    "Max": lambda *numbers: functools.reduce(torch.sym_max, numbers),
    "Min": lambda *numbers: functools.reduce(torch.sym_min, numbers),
    "Mod": operator.mod,
    "Neg": operator.neg,
    "Not": operator.not_,
    "Or": lambda one, two: one or two,
}

OPERATORS: dict[str, Callable[..., Any]] = {
    **MOVING,
    **{name: each(function) for name, function in _NUMBERS.items()},
    "Cast": lambda value, to: each(bool)(value) if to == onnx.TensorProto.BOOL else MOVING["Cast"](value, to),
    "ConstantOfShape": _filled,
    "Range": lambda start, limit, delta: np.array(list(range(*integers([start, limit, delta]))), dtype=object),
    "ReduceMax": reduced(torch.sym_max),
    "ReduceMin": reduced(torch.sym_min),
    "ReduceProd": reduced(operator.mul),
    "ReduceSum": reduced(operator.add),
    "Shape": _shape,
    "Size": lambda tensor: reduced(operator.mul)(_shape(tensor), keepdims=0),
}

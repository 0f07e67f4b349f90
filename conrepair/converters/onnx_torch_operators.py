"""Our operators for onnx2torch: sizes, axes and indices are Python integers or torch.export's symbols.

Integers travel between modules as numpy arrays of objects, so that numpy's rules of indexing and broadcasting,
which are ONNX's, apply to symbols too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import torch
from torch import Tensor
from torch.nn import functional

from conrepair.converters.onnx_torch_integers import DOMAIN, OPERANDS
from conrepair.converters.onnx_torch_resize import resize

__all__ = ["register"]

Integers = npt.NDArray[np.object_]


@functools.cache
def register() -> None:
    """Tell onnx2torch about our operators, once a process."""
    from onnx2torch.node_converters.registry import add_converter

    for name, (function, places) in _OPERATORS.items():
        add_converter(operation_type=name, version=1, domain=DOMAIN)(_converter(function, places))


class Operator(torch.nn.Module):
    """A function with its attributes and those of its operands that are constant integers."""

    def __init__(self, function: Callable[..., Any], operands: list[Any], attributes: Mapping[str, Any]) -> None:
        super().__init__()
        self._function = function
        self._operands = operands
        self._attributes = dict(attributes)
        self._open = [index for index, value in enumerate(operands) if value is _GIVEN]

    def forward(self, *given: Any) -> Any:
        operands = list(self._operands)
        for index, value in zip(self._open, given, strict=True):
            operands[index] = value
        return self._function(*operands, **self._attributes)


_GIVEN = object()


def _converter(function: Callable[..., Any], places: frozenset[int] | None) -> Callable[..., Any]:
    """What onnx2torch calls for a node.

    Args:
        function: Computes the operator.
        places: Positions of its operands that are integers; None: all.
    """

    def convert(node: Any, graph: Any) -> Any:
        from onnx2torch.utils.common import OnnxMapping, OperationConverterResult

        operands: list[Any] = []
        names = []
        for index, name in enumerate(node.input_values):
            if not name:
                operands.append(None)
            elif name in graph.initializers and (places is None or index in places):
                operands.append(_integers(graph.initializers[name].to_torch()))
            else:
                operands.append(_GIVEN)
                names.append(name)
        attributes = {
            name: value.to_torch() if hasattr(value, "to_torch") else value for name, value in node.attributes.items()
        }
        if function in _SEVERAL:
            attributes["outputs"] = len(node.output_values)
        return OperationConverterResult(
            Operator(function, operands, attributes), OnnxMapping(tuple(names), node.output_values)
        )

    return convert


def _integers(tensor: Tensor) -> Integers:
    return np.array(tensor.tolist(), dtype=object)


def _list(value: Any) -> list[Any]:
    """Integers of a vector, wherever they come from."""
    return list(value.reshape(-1)) if isinstance(value, np.ndarray) else [int(item) for item in value.reshape(-1)]


# --- Operators that compute on integers ---


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
    first, last = _list(starts), _list(ends)
    places = range(len(first)) if axes is None else _list(axes)
    strides = [1] * len(first) if steps is None else _list(steps)
    for start, end, axis, step in zip(first, last, places, strides, strict=True):
        selection = [slice(None)] * value.ndim
        selection[axis] = slice(start, end, step)
        value = value[tuple(selection)]
    return value


def _squeeze_integers(value: Integers, axes: Integers | None = None) -> Integers:
    return np.squeeze(value, None if axes is None else tuple(_list(axes)))


def _unsqueeze_integers(value: Integers, axes: Integers) -> Integers:
    return np.expand_dims(value, tuple(_list(axes)))


def _transpose_integers(value: Integers, perm: Sequence[int] | None = None) -> Integers:
    return np.transpose(value, perm)


def _reshape_integers(value: Integers, shape: Integers, **_: Any) -> Integers:
    return value.reshape([int(size) for size in _list(shape)])


def _filled(shape: Integers, value: Tensor | None = None) -> Integers:
    number = 0 if value is None else value.item()
    return np.full([int(size) for size in _list(shape)], number, dtype=object)


def _expand_integers(value: Integers, shape: Integers) -> Integers:
    sizes = np.broadcast_shapes(value.shape, tuple(int(size) for size in _list(shape)))
    return np.broadcast_to(value, sizes)


def _range_integers(start: Integers, limit: Integers, delta: Integers) -> Integers:
    numbers = range(int(start.item()), int(limit.item()), int(delta.item()))
    return np.array(list(numbers), dtype=object)


def _reduced(function: Callable[[Any, Any], Any]) -> Callable[..., Integers]:
    def apply(value: Integers, axes: Any = None, keepdims: int = 1, **_: Any) -> Integers:
        del axes
        if value.ndim > 1:
            raise NotImplementedError("reducing a matrix of integers")
        result = functools.reduce(function, _list(value))
        return np.array([result], dtype=object) if keepdims and value.ndim else _scalar(result)

    return apply


def _tensor(value: Integers, to: int) -> Tensor:
    dtype = {onnx.TensorProto.BOOL: torch.bool, onnx.TensorProto.INT32: torch.int32}.get(to, torch.int64)
    numbers = _list(value)
    if all(isinstance(number, int) for number in numbers):
        return torch.tensor(numbers, dtype=dtype).reshape(value.shape)
    parts = [torch.full((), number, dtype=dtype) for number in numbers]
    return torch.stack(parts).reshape(value.shape) if value.ndim else parts[0]


# --- Operators that compute on tensors ---


def _reshape(tensor: Tensor, shape: Integers, allowzero: int = 0) -> Tensor:
    sizes = _list(shape)
    if not allowzero:
        sizes = [tensor.shape[axis] if size == 0 else size for axis, size in enumerate(sizes)]
    return tensor.reshape(sizes)


def _expand(tensor: Tensor, shape: Integers) -> Tensor:
    sizes = _list(shape)
    rank = max(len(sizes), tensor.ndim)
    own = [1] * (rank - tensor.ndim) + list(tensor.shape)
    sizes = [1] * (rank - len(sizes)) + sizes
    return tensor.expand([mine if wanted == 1 else wanted for mine, wanted in zip(own, sizes, strict=True)])


def _slice(
    tensor: Tensor, starts: Any, ends: Any, axes: Integers | None = None, steps: Integers | None = None
) -> Tensor:
    starts, ends = _list(starts), _list(ends)
    places = range(len(starts)) if axes is None else _list(axes)
    strides = [1] * len(starts) if steps is None else _list(steps)
    for start, end, axis, step in zip(starts, ends, places, strides, strict=True):
        if step > 0:
            selection = [slice(None)] * tensor.ndim
            selection[axis] = slice(start, end, step)
            tensor = tensor[tuple(selection)]
        else:
            indices = list(range(int(tensor.shape[axis])))[slice(start, max(end, -(1 << 62)), step)]
            tensor = tensor.index_select(axis, torch.tensor(indices, dtype=torch.int64))
    return tensor


def _pad(
    tensor: Tensor, pads: Integers, value: Any = None, axes: Integers | None = None, mode: str = "constant"
) -> Tensor:
    numbers = _list(pads)
    places = [axis % tensor.ndim for axis in (range(len(numbers) // 2) if axes is None else _list(axes))]
    ends = {axis: (numbers[index], numbers[index + len(places)]) for index, axis in enumerate(places)}
    if mode != "constant":
        for axis, (before, after) in ends.items():
            if before != 0 or after != 0:
                tensor = _pad_axis(tensor, axis, int(before), int(after), mode)
        return tensor
    flat = [number for axis in reversed(range(tensor.ndim)) for number in ends.get(axis, (0, 0))]
    if tensor.dtype == torch.bool:
        return functional.pad(tensor.to(torch.uint8), flat, value=_fill(value)).to(torch.bool)
    return functional.pad(tensor, flat, value=_fill(value))


def _fill(value: Any) -> float | int:
    return 0 if value is None else value.item()


def _pad_axis(tensor: Tensor, axis: int, before: int, after: int, mode: str) -> Tensor:
    places = np.arange(int(tensor.shape[axis]))
    kept = places[max(-before, 0) : len(places) - max(-after, 0)]
    padded = np.pad(kept, (max(before, 0), max(after, 0)), mode=mode)  # type: ignore[call-overload]
    return tensor.index_select(axis, torch.from_numpy(padded))


def _tile(tensor: Tensor, repeats: Integers) -> Tensor:
    return tensor.repeat(_list(repeats))


def _full(shape: Integers, value: Tensor | None = None) -> Tensor:
    if value is None:
        return torch.zeros(_list(shape))
    return torch.full(_list(shape), value.item(), dtype=value.dtype)


def _range(start: Any, limit: Any, delta: Any) -> Tensor:
    given = [item for item in (start, limit, delta) if isinstance(item, Tensor)]
    dtype = given[0].dtype if given else None
    return torch.arange(start.item(), limit.item(), delta.item(), dtype=dtype)


def _gather_tensor(tensor: Tensor, places: Any, axis: int = 0) -> Tensor:
    if places.ndim == 0:
        return tensor.select(axis, places.item())
    axis %= tensor.ndim
    size = tensor.shape[axis]
    indices = [place + size if place < 0 else place for place in _list(places)]
    taken = tensor.index_select(axis, _tensor(np.array(indices, dtype=object), onnx.TensorProto.INT64))
    return taken.reshape([*tensor.shape[:axis], *places.shape, *tensor.shape[axis + 1 :]])


def _squeeze(tensor: Tensor, axes: Integers) -> Tensor:
    return tensor.squeeze(tuple(_list(axes)))


def _unsqueeze(tensor: Tensor, axes: Integers) -> Tensor:
    numbers = _list(axes)
    rank = tensor.ndim + len(numbers)
    for axis in sorted(number % rank for number in numbers):
        tensor = tensor.unsqueeze(axis)
    return tensor


def _split(tensor: Tensor, sizes: Integers, axis: int = 0, outputs: int = 1, **_: Any) -> Any:
    parts = tensor.split(_list(sizes), dim=axis)
    return parts if outputs > 1 else parts[0]


def _top_k(tensor: Tensor, k: Any, axis: int = -1, largest: int = 1, outputs: int = 2, **_: Any) -> Any:
    """Of equal elements, ONNX takes those in front; torch.topk takes any."""
    values, places = torch.sort(tensor, dim=axis, descending=bool(largest), stable=True)
    count = _list(k)[0]
    found = values.narrow(axis, 0, count), places.narrow(axis, 0, count)
    return found if outputs > 1 else found[0]


def _reduce_sum(
    tensor: Tensor, axes: Integers | None = None, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Tensor:
    numbers = [] if axes is None else _list(axes)
    if not numbers and noop_with_empty_axes:
        return tensor
    places = tuple(numbers) or tuple(range(tensor.ndim))
    return tensor.sum(places, keepdim=bool(keepdims), dtype=tensor.dtype)


def _trilu(tensor: Tensor, k: Any = None, upper: int = 1) -> Tensor:
    diagonal = 0 if k is None else k.item()
    return tensor.triu(diagonal) if upper else tensor.tril(diagonal)


_REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


def _scatter_nd(tensor: Tensor, indices: Tensor, updates: Tensor, reduction: str = "none") -> Tensor:
    places = tuple(indices.unbind(-1))
    if reduction in {"none", "add"}:
        return tensor.index_put(places, updates, accumulate=reduction == "add")
    depth = len(places)
    flat = places[0] * 0
    for axis, place in enumerate(places):
        flat = flat * tensor.shape[axis] + torch.where(place < 0, place + tensor.shape[axis], place)
    rows = tensor.reshape(-1, *tensor.shape[depth:])
    parts = updates.reshape(-1, *tensor.shape[depth:])
    index = flat.reshape(-1, *[1] * (parts.ndim - 1)).expand_as(parts)
    return rows.scatter_reduce(0, index, parts, _REDUCTIONS[reduction]).reshape(tensor.shape)


def _cum_sum(tensor: Tensor, axis: Any, exclusive: int = 0, reverse: int = 0) -> Tensor:
    place = _list(axis)[0]
    turned = tensor.flip(place) if reverse else tensor
    result = turned.cumsum(place, dtype=tensor.dtype)
    if exclusive:
        result = result - turned
    return result.flip(place) if reverse else result


def _is_inf(tensor: Tensor, detect_negative: int = 1, detect_positive: int = 1) -> Tensor:
    result = torch.zeros_like(tensor, dtype=torch.bool)
    if detect_negative:
        result = result | torch.isneginf(tensor)
    return result | torch.isposinf(tensor) if detect_positive else result


def _non_zero(tensor: Tensor) -> Tensor:
    return tensor.nonzero().T


def _pow(base: Tensor, exponent: Tensor) -> Tensor:
    return torch.pow(base, exponent).to(base.dtype)


def _gather_elements(tensor: Tensor, places: Tensor, axis: int = 0) -> Tensor:
    places = places.to(torch.int64)
    return tensor.gather(axis, torch.where(places < 0, places + tensor.shape[axis], places))


def _selu(
    tensor: Tensor, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875
) -> Tensor:
    return gamma * torch.where(tensor > 0, tensor, alpha * torch.expm1(tensor.clamp(max=0)))


def _clip(tensor: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    result = tensor if low is None else torch.maximum(tensor, low)
    return result if high is None else torch.minimum(result, high)


def _global_max_pool(tensor: Tensor) -> Tensor:
    return tensor.amax(tuple(range(2, tensor.ndim)), keepdim=True)


def _layer_norm(
    tensor: Tensor,
    scale: Tensor,
    bias: Tensor | None = None,
    axis: int = -1,
    epsilon: float = 1e-5,
    outputs: int = 1,
    **_: Any,
) -> Any:
    shape = tensor.shape[axis % tensor.ndim :]
    if scale.shape == shape and (bias is None or bias.shape == shape):
        result = functional.layer_norm(tensor, shape, scale, bias, epsilon)
    else:
        result = functional.layer_norm(tensor, shape, eps=epsilon) * scale
        result = result if bias is None else result + bias
    if outputs == 1:
        return result
    axes = tuple(range(axis % tensor.ndim, tensor.ndim))
    variance, mean = torch.var_mean(tensor, axes, correction=0, keepdim=True)
    return (result, mean, torch.rsqrt(variance + epsilon))[:outputs]


_SEVERAL = {_layer_norm, _split, _top_k}

_TENSORS: dict[str, Callable[..., Any]] = {
    "ConstantOfShape": _full,
    "CumSum": _cum_sum,
    "Expand": _expand,
    "Gather": _gather_tensor,
    "Pad": _pad,
    "Range": _range,
    "ReduceSum": _reduce_sum,
    "Reshape": _reshape,
    "Resize": resize,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "TopK": _top_k,
    "Trilu": _trilu,
    "Unsqueeze": _unsqueeze,
}

_OTHERS: dict[str, Callable[..., Any]] = {
    "Acosh": torch.acosh,
    "Asinh": torch.asinh,
    "Atanh": torch.atanh,
    "Clip": _clip,
    "Cosh": torch.cosh,
    "GatherElements": _gather_elements,
    "GlobalMaxPool": _global_max_pool,
    "IsInf": _is_inf,
    "LayerNormalization": _layer_norm,
    "NonZero": _non_zero,
    "Pow": _pow,
    "ScatterND": _scatter_nd,
    "Selu": _selu,
    "Sinh": torch.sinh,
}

_INTEGERS: dict[str, Callable[..., Any]] = {
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

_OPERATORS: dict[str, tuple[Callable[..., Any], frozenset[int] | None]] = {
    **{name: (function, OPERANDS[name]) for name, function in _TENSORS.items()},
    **{f"Integer{name}": (function, None) for name, function in _INTEGERS.items()},
    **{name: (function, frozenset()) for name, function in _OTHERS.items()},
    "Tensor": (_tensor, None),
}

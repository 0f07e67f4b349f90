"""Operators on tensors whose sizes, axes and indices are integers or symbols, and others that onnx2torch lacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import torch
from torch import Tensor
from torch.nn import functional

from conrepair.formats.converters.interpolation import Axis, coordinates, cubic, linear, nearest, weights
from conrepair.formats.converters.torch_domain.integer_operators import listed, tensor_of
from conrepair.formats.onnx.passes.sizes import Sizes, slice_of


def _reshape(tensor: Tensor, shape: Sizes, allowzero: int = 0) -> Tensor:
    sizes = listed(shape)
    if not allowzero:
        sizes = [tensor.shape[axis] if size == 0 else size for axis, size in enumerate(sizes)]
    return tensor.reshape(sizes)


def _expand(tensor: Tensor, shape: Sizes) -> Tensor:
    sizes = listed(shape)
    rank = max(len(sizes), tensor.ndim)
    own = [1] * (rank - tensor.ndim) + list(tensor.shape)
    sizes = [1] * (rank - len(sizes)) + sizes
    return tensor.expand([mine if wanted == 1 else wanted for mine, wanted in zip(own, sizes, strict=True)])


def _slice(tensor: Tensor, starts: Any, ends: Any, axes: Sizes | None = None, steps: Sizes | None = None) -> Tensor:
    starts, ends = listed(starts), listed(ends)
    places = range(len(starts)) if axes is None else listed(axes)
    strides = [1] * len(starts) if steps is None else listed(steps)
    for start, end, axis, step in zip(starts, ends, places, strides, strict=True):
        if step > 0:
            selection = [slice(None)] * tensor.ndim
            selection[axis] = slice(start, end, step)
            tensor = tensor[tuple(selection)]
        else:
            size = int(tensor.shape[axis])
            indices = range(size)[slice_of(start, end, step, size)]
            tensor = tensor.index_select(axis, torch.tensor(indices, dtype=torch.int64))
    return tensor


def _pad(tensor: Tensor, pads: Sizes, value: Any = None, axes: Sizes | None = None, mode: str = "constant") -> Tensor:
    numbers = listed(pads)
    places = [axis % tensor.ndim for axis in (range(len(numbers) // 2) if axes is None else listed(axes))]
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


def _full(shape: Sizes, value: Tensor | None = None) -> Tensor:
    if value is None:
        return torch.zeros(listed(shape))
    return torch.full(listed(shape), value.item(), dtype=value.dtype)


def _range(start: Any, limit: Any, delta: Any) -> Tensor:
    given = [item for item in (start, limit, delta) if isinstance(item, Tensor)]
    dtype = given[0].dtype if given else None
    return torch.arange(start.item(), limit.item(), delta.item(), dtype=dtype)


def _gather_tensor(tensor: Tensor, places: Any, axis: int = 0) -> Tensor:
    if places.ndim == 0:
        return tensor.select(axis, places.item())
    axis %= tensor.ndim
    size = tensor.shape[axis]
    indices = [place + size if place < 0 else place for place in listed(places)]
    taken = tensor.index_select(axis, tensor_of(np.array(indices, dtype=object), onnx.TensorProto.INT64))
    return taken.reshape([*tensor.shape[:axis], *places.shape, *tensor.shape[axis + 1 :]])


def _unsqueeze(tensor: Tensor, axes: Sizes) -> Tensor:
    numbers = listed(axes)
    rank = tensor.ndim + len(numbers)
    for axis in sorted(number % rank for number in numbers):
        tensor = tensor.unsqueeze(axis)
    return tensor


def _split(tensor: Tensor, sizes: Sizes, axis: int = 0, outputs: int = 1, **_: Any) -> Any:
    parts = tensor.split(listed(sizes), dim=axis)
    return parts if outputs > 1 else parts[0]


def _top_k(tensor: Tensor, k: Any, axis: int = -1, largest: int = 1, outputs: int = 2, **_: Any) -> Any:
    """Of equal elements, ONNX takes those in front; torch.topk takes any."""
    values, places = torch.sort(tensor, dim=axis, descending=bool(largest), stable=True)
    count = listed(k)[0]
    found = values.narrow(axis, 0, count), places.narrow(axis, 0, count)
    return found if outputs > 1 else found[0]


def _reduce_sum(
    tensor: Tensor, axes: Sizes | None = None, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Tensor:
    numbers = [] if axes is None else listed(axes)
    if not numbers and noop_with_empty_axes:
        return tensor
    places = tuple(numbers) or tuple(range(tensor.ndim))
    return tensor.sum(places, keepdim=bool(keepdims), dtype=tensor.dtype)


def _reduction(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A reduction whose axes are an attribute; one axis after the other, the last first."""

    def reduce(tensor: Tensor, axes: Sequence[int] | None = None, keepdims: int = 1) -> Tensor:
        places = range(tensor.ndim) if not axes else {axis % tensor.ndim for axis in axes}
        for axis in sorted(places, reverse=True):
            tensor = function(tensor, axis, keepdim=bool(keepdims))
        return tensor

    return reduce


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
    place = listed(axis)[0]
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


def _gather_elements(tensor: Tensor, places: Tensor, axis: int = 0) -> Tensor:
    places = places.to(torch.int64)
    return tensor.gather(axis, torch.where(places < 0, places + tensor.shape[axis], places))


def _reverse_sequence(tensor: Tensor, lengths: Tensor, batch_axis: int = 1, time_axis: int = 0) -> Tensor:
    moved = tensor.movedim((batch_axis, time_axis), (0, 1))
    steps, ends = torch.arange(moved.shape[1]), lengths.to(torch.int64).unsqueeze(1)
    places = torch.where(steps < ends, ends - 1 - steps, steps)
    index = places.reshape(*places.shape, *[1] * (moved.ndim - 2)).expand_as(moved)
    return moved.gather(1, index).movedim((0, 1), (batch_axis, time_axis))


def _selu(
    tensor: Tensor, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875
) -> Tensor:
    return gamma * torch.where(tensor > 0, tensor, alpha * torch.expm1(tensor.clamp(max=0)))


def _clip(tensor: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    result = tensor if low is None else torch.maximum(tensor, low)
    return result if high is None else torch.minimum(result, high)


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


def _resize(
    tensor: Tensor,
    region: Any = None,
    scales: Any = None,
    sizes: Any = None,
    *,
    mode: str = "nearest",
    coordinate_transformation_mode: str = "half_pixel",
    nearest_mode: str = "round_prefer_floor",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
) -> Tensor:
    """Resize the axes whose sizes change, which must be known (not symbolic), each by a matrix.

    torch.nn.functional.interpolate knows some modes and coordinate systems only, and onnx2torch takes it for all.

    Args:
        tensor: Of any rank.
        region: Only used by a coordinate system that isn't known here.
        scales: A number for each axis, or empty.
        sizes: Used when there are no scales.
        mode: "nearest", "linear" or "cubic".
        coordinate_transformation_mode: ONNX's, without "tf_crop_and_resize".
        nearest_mode: ONNX's.
        cubic_coeff_a: Of cubic interpolation.
        exclude_outside: Whether weights outside the tensor count as 0.
        extrapolation_value: Not used by the coordinate systems that are known.

    Raises:
        NotImplementedError: for "tf_crop_and_resize".
    """
    del region, extrapolation_value
    if coordinate_transformation_mode == "tf_crop_and_resize":
        raise NotImplementedError("Resize with tf_crop_and_resize")
    given = [] if scales is None else [float(scale) for scale in scales]
    wanted = [] if sizes is None or given else list(sizes)
    for axis in range(tensor.ndim):
        if (given and given[axis] == 1) or (not given and wanted[axis] == tensor.shape[axis]):
            continue
        size = int(tensor.shape[axis])
        length = int(np.floor(size * np.float32(given[axis]))) if given else int(wanted[axis])
        resized = Axis(size, length, given[axis] if given else length / size)
        where = coordinates(resized, coordinate_transformation_mode)
        if mode == "nearest":
            tensor = tensor.index_select(axis, torch.from_numpy(nearest(where, nearest_mode, resized)))
        else:
            kernel = linear if mode == "linear" else cubic(cubic_coeff_a)
            matrix = weights(where, resized, kernel, antialias=False, exclude_outside=bool(exclude_outside))
            factors = torch.from_numpy(matrix).to(tensor.dtype)
            tensor = torch.matmul(tensor.movedim(axis, -1), factors.T).movedim(-1, axis)
    return tensor


SEVERAL = {_layer_norm, _split, _top_k}

OPERATORS: dict[str, tuple[Callable[..., Any], set[int]]] = {
    "ConstantOfShape": (_full, {0}),
    "CumSum": (_cum_sum, {1}),
    "Expand": (_expand, {1}),
    "Gather": (_gather_tensor, {1}),
    "Pad": (_pad, {1, 2, 3}),
    "Range": (_range, {0, 1, 2}),
    "ReduceSum": (_reduce_sum, {1}),
    "Reshape": (_reshape, {1}),
    "Resize": (_resize, {1, 2, 3}),
    "Slice": (_slice, {1, 2, 3, 4}),
    "Split": (_split, {1}),
    "Squeeze": (lambda tensor, axes: tensor.squeeze(tuple(listed(axes))), {1}),
    "Tile": (lambda tensor, repeats: tensor.repeat(listed(repeats)), {1}),
    "TopK": (_top_k, {1}),
    "Trilu": (_trilu, {1}),
    "Unsqueeze": (_unsqueeze, {1}),
}
"""Those that take integers, or a number that may be none, with the positions of these operands."""

OTHERS: dict[str, Callable[..., Any]] = {
    **{name: getattr(torch, name.lower()) for name in ("Acosh", "Asinh", "Atanh", "Cosh", "Sinh")},
    "Clip": _clip,
    "GatherElements": _gather_elements,
    "GlobalMaxPool": lambda tensor: tensor.amax(tuple(range(2, tensor.ndim)), keepdim=True),
    "IsInf": _is_inf,
    "LayerNormalization": _layer_norm,
    "NonZero": lambda tensor: tensor.nonzero().T,
    "Pow": lambda base, exponent: torch.pow(base, exponent).to(base.dtype),
    "ReduceMax": _reduction(torch.amax),
    "ReduceMin": _reduction(torch.amin),
    "ReduceProd": _reduction(lambda tensor, axis, keepdim: tensor.prod(axis, keepdim=keepdim, dtype=tensor.dtype)),
    "ReverseSequence": _reverse_sequence,
    "ScatterND": _scatter_nd,
    "Selu": _selu,
}

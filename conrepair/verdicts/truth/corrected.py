"""Operators that ONNX's reference computes otherwise than ONNX says, or in float32: right ones, or a refusal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
from onnx.reference.op_run import OpRun
from onnx.reference.ops.op_grid_sample import GridSample as AnyGridSample
from onnx.reference.ops.op_pool_common import CommonPool

from conrepair.ground.operators.all_operators import OPERATORS, ROUNDED
from conrepair.ground.operators.layers import RECURRENT_ACTIVATIONS
from conrepair.ground.operators.moves import pad
from conrepair.ground.operators.record import Array

_CUBIC = {b"cubic", b"bicubic"}
_MEANS = {"AveragePool", "LpPool"}
_PICTURES = 4  # axes
_EXTRAS = ("clip", "input_forget")


def window_sums(x: Array, size: int) -> Array:
    """Sums over neighbouring channels, as local response normalization takes them.

    Args:
        x: [N, C, ...].
        size: Channels of a sum.
    """
    before = (size - 1) // 2
    padded = np.pad(x, [(0, 0), (before, size - 1 - before), *[(0, 0)] * (x.ndim - 2)])
    return np.asarray(sum(padded[:, place : place + x.shape[1]] for place in range(size)))


def refusal(node: onnx.NodeProto) -> str | None:
    """Why the reference's answer for a node isn't ONNX's; None where it is.

    Args:
        node: Any.
    """
    given = {item.name: onnx.helper.get_attribute_value(item) for item in node.attribute}
    if node.op_type in RECURRENT_ACTIVATIONS:
        usual = [name.encode() for name in RECURRENT_ACTIVATIONS[node.op_type]]
        activations = given.get("activations", usual)
        if list(activations) not in (usual, usual * 2):
            return "its activations are left out"
        if any(given.get(name) for name in _EXTRAS) or (len(node.input) > 4 and node.input[4]):
            return "clip, input_forget and sequence_lens are left out"
    if node.op_type == "LpPool" and given.get("ceil_mode"):
        return "what lies beyond the padding is counted"
    if (
        node.op_type in _MEANS
        and given.get("auto_pad", b"NOTSET") != b"NOTSET"
        and max(given.get("dilations", [1])) > 1
    ):
        return "dilations are left out where it pads by itself"
    if node.op_type == "Loop" and (len(node.input) < 2 or not node.input[1]):
        return "without a condition it isn't run at all"
    if node.op_type == "MaxPool" and len(node.output) > 1 and node.output[1]:
        return "indices begin anew in each channel"
    if node.op_type == "Pad" and given.get("mode") == b"wrap":
        return "what is cut off by pads below zero may be wrapped around, or not"
    if node.op_type == "GridSample" and given.get("mode") in _CUBIC and given.get("padding_mode") == b"border":
        return "cubic interpolation at the border isn't as PyTorch and ONNX Runtime compute it"
    return None


def _affine_grid(theta: Array, size: Array, align_corners: int = 0) -> Array:
    """The reference's gives float32."""
    space = [int(length) for length in size[2:]]
    along = [np.arange(1 - length, length, 2) / max(length - bool(align_corners), 1) for length in space]
    places = np.meshgrid(*along, indexing="ij")
    full = np.stack([*reversed(places), np.ones(space)])
    return np.moveaxis(np.tensordot(theta, full, (2, 0)), 1, -1)


def _deform_conv(
    x: Array, w: Array, offset: Array, b: Array | None = None, mask: Array | None = None, **given: Any
) -> Array:
    """The reference's has places in float32, and a loop for each number."""
    from scipy.ndimage import map_coordinates  # it takes a tenth of a second to load

    if x.ndim != _PICTURES:
        raise NotImplementedError(f"{x.ndim - 2} spatial axes")
    group, parts, kernel, space = given["group"], given["offset_group"], w.shape[2:], offset.shape[2:]
    steps, gaps = (given[name] or [1, 1] for name in ("strides", "dilations"))
    pads = given["pads"] or [0] * 4
    at = np.moveaxis(offset.reshape(-1, parts, *kernel, 2, *space), 4, 2).copy()
    every = np.ogrid[tuple(map(slice, (*kernel, *space)))]
    for axis in range(2):
        at[:, :, axis] += every[axis] * gaps[axis] + every[axis + 2] * steps[axis] - pads[axis]
    channels = x.reshape(x.shape[0], parts, -1, *x.shape[2:])
    columns = np.empty((*channels.shape[:3], *kernel, *space))
    for item in np.ndindex(*channels.shape[:3]):
        columns[item] = map_coordinates(channels[item], at[item[:2]], order=1, mode="grid-constant")
    if mask is not None:
        columns *= mask.reshape(-1, parts, 1, *kernel, *space)
    grouped = columns.reshape(x.shape[0], group, -1, *kernel, *space)
    result = np.einsum("ngcijhw,gocij->ngohw", grouped, w.reshape(group, -1, *w.shape[1:]))
    result = result.reshape(x.shape[0], -1, *space)
    return result if b is None else np.asarray(result + b.reshape(1, -1, 1, 1))


def _conv(x: Array, w: Array, b: Array | None = None, **given: Any) -> Array:
    """The reference's is right, but has a loop for each channel and each group, of hours for a real network."""
    rank, group = x.ndim - 2, given["group"] or 1
    steps, gaps = (np.array(given[name] or [1] * rank) for name in ("strides", "dilations"))
    reach = gaps * (np.array(w.shape[2:]) - 1) + 1
    pads = np.array(given["pads"] or [0] * 2 * rank).reshape(2, rank)
    if given["auto_pad"].startswith("SAME"):
        sizes = np.array(x.shape[2:])
        missing = np.maximum((-(-sizes // steps) - 1) * steps + reach - sizes, 0)
        less, more = missing // 2, missing - missing // 2
        pads = np.array([less, more] if given["auto_pad"] == "SAME_UPPER" else [more, less])
    elif given["auto_pad"] == "VALID":
        pads = np.zeros((2, rank), int)
    padded = np.pad(x, [(0, 0), (0, 0), *pads.T])
    windows = np.lib.stride_tricks.sliding_window_view(padded, reach, tuple(range(2, x.ndim)))
    places: list[Any] = [slice(None, None, int(step)) for step in (*steps, *gaps)]
    windows = windows[(..., *places)]
    space = windows.shape[2 : 2 + rank]
    weights = w.reshape(group, w.shape[0] // group, -1).swapaxes(1, 2)
    result = np.zeros((x.shape[0], w.shape[0], *space))
    for place, sample in enumerate(windows):  # one at a time, as windows are copied
        parts = sample.reshape(group, -1, *sample.shape[1:])
        rows = np.moveaxis(parts, 1, 1 + rank).reshape(group, int(np.prod(space)), -1)
        result[place] = (rows @ weights).swapaxes(1, 2).reshape(w.shape[0], *space)
    return result if b is None else np.asarray(result + b.reshape(1, -1, *[1] * rank))


def _conv_transpose(x: Array, w: Array, b: Array | None = None, **given: Any) -> Array:
    """The reference's takes other weights for a group than it should, and a loop for each number."""
    rank, group = x.ndim - 2, given["group"]
    space, kernel = np.array(x.shape[2:]), np.array(w.shape[2:])
    steps, gaps, more = (
        np.array(given[name] or [usual] * rank)
        for name, usual in (("strides", 1), ("dilations", 1), ("output_padding", 0))
    )
    begin, end = np.array(given["pads"] or [0] * 2 * rank).reshape(2, rank)
    whole = steps * (space - 1) + gaps * (kernel - 1) + 1
    sizes = whole + more - begin - end
    if given["output_shape"] or given["auto_pad"].startswith("SAME"):
        sizes = np.array(given["output_shape"] or space * steps)[-rank:]
        cut = whole + more - sizes
        begin = cut // 2 if given["auto_pad"] == "SAME_UPPER" else cut - cut // 2
    full: Any = np.zeros((x.shape[0], group, w.shape[1], *np.maximum(whole, begin + sizes)))
    parts, weights = x.reshape(x.shape[0], group, -1, *space), w.reshape(group, -1, *w.shape[1:])
    for place in np.ndindex(*kernel):
        ends = zip(place * gaps, place * gaps + steps * (space - 1) + 1, steps, strict=True)
        window = (..., *(slice(*map(int, item)) for item in ends))
        full[window] += np.einsum("ngc...,gcm->ngm...", parts, weights[(slice(None),) * 3 + place])
    kept = (..., *(slice(int(low), int(low + size)) for low, size in zip(begin, sizes, strict=True)))
    result = full[kept].reshape(x.shape[0], -1, *sizes)
    return np.asarray(result if b is None else result + b.reshape(1, -1, *[1] * rank))


class GridSample(AnyGridSample):
    """The reference's knows the names of opset 20 alone, and has coordinates in float32."""

    op_domain = ""

    def _run(self, x: Array, grid: Array, mode: str = "linear", **given: Any) -> tuple[Array]:
        names = {"bilinear": "linear", "bicubic": "cubic"}
        found: tuple[Array] = super()._run(x, grid, mode=names.get(mode, mode), **given)
        return found

    def _gs_denormalize_coordinates(self, n: Any, dims: Any, align_corners: bool) -> Array:
        pairs = zip(n, dims, strict=False)
        return np.array([self._gs_denormalize(place, size, align_corners) for place, size in pairs], np.float64)


class LpPool(CommonPool):
    """The reference's takes padding for missing, and leaves out dilations."""

    op_domain = ""

    def _run(self, x: Array, p: int = 2, count_include_pad: int = 1, **given: Any) -> tuple[Array]:
        means = super()._run("AVG", 1, np.abs(x) ** p, **given)[0]
        return ((means * np.prod(given["kernel_shape"])) ** (1.0 / p),)


def _pad(x: Array, pads: Any, value: Any = None, axes: Any = None, mode: str = "constant") -> Array:
    """The reference's doesn't take pads below zero."""
    everywhere = np.zeros((2, x.ndim), dtype=int)
    everywhere[:, slice(None) if axes is None else np.asarray(axes)] = np.asarray(pads, dtype=int).reshape(2, -1)
    around = 0 if value is None else np.asarray(value).item()
    return pad(x, pads=everywhere.ravel(), mode=mode, value=around)


def _one_hot(indices: Array, depth: Any, values: Array, axis: int = -1) -> Array:
    """OneHot: a fractional index is made whole by ONNX, and its reference finds no place for it."""
    count, off, on = int(np.ravel(depth)[0]), *values
    places = np.trunc(np.asarray(indices, np.float64)) if indices.dtype.kind == "f" else indices
    around = np.where(places < 0, places + count, places)
    hot = np.moveaxis(around[..., None] == np.arange(count), -1, axis)
    return np.asarray(np.where(hot, on, off), values.dtype)


def _mean_variance_normalization(x: Array, axes: Any = None) -> Array:
    """Its definition has constants in float32, and the difference of two nearly equal means."""
    along = tuple((0, 2, 3) if axes is None else axes)
    return np.asarray((x - x.mean(axis=along, keepdims=True)) / (x.std(axis=along, keepdims=True) + 1e-9))


def _group_normalization(x: Array, scale: Array, bias: Array, **attributes: Any) -> Array:
    """Its definition computes in float32 by default."""
    grouped = x.reshape(x.shape[0], attributes["num_groups"], -1)
    around = grouped - grouped.mean(axis=2, keepdims=True)
    unit = around / np.sqrt((around**2).mean(axis=2, keepdims=True) + attributes["epsilon"])
    parts = unit.reshape(x.shape[0], scale.size, -1)
    return np.reshape(parts * scale.reshape(1, -1, 1) + bias.reshape(1, -1, 1), x.shape)


def _local_response(x: Array, **attributes: Any) -> Array:
    """The reference's doesn't take more channels than there are."""
    alpha, beta, bias, size = (attributes[name] for name in ("alpha", "beta", "bias", "size"))
    return np.asarray(x / (bias + alpha / size * window_sums(x * x, size)) ** beta)


def _of_rows(function: Callable[..., Array], x: Array, node: Any) -> Array:
    """As before opset 13: all axes from one on are a row."""
    axis = next((item.i for item in node.attribute if item.name == "axis"), 1) % max(x.ndim, 1)
    rows = x.reshape(int(np.prod(x.shape[:axis])), -1)
    return np.asarray(function(rows, axis=1).reshape(x.shape))


def _made(name: str, function: Callable[..., Array]) -> type:
    def run(self: Any, *operands: Array, **attributes: Any) -> tuple[Array]:
        with np.errstate(all="ignore"):
            if name in _ROWS and self.run_params["opsets"].get("", 13) < 13:
                return (_of_rows(function, operands[0], self.onnx_node),)
            return (np.asarray(function(*operands, **attributes)),)

    return type(name, (OpRun,), {"op_domain": "", "_run": run})


_ROWS = {name for name, item in ROUNDED.items() if item.family == "softmax"}
_FUNCTIONS: Mapping[str, Callable[..., Array]] = {
    # Ours in place of the reference's, which writes formulas as they stand in ONNX and loses digits.
    **{name: item.compute for name, item in ROUNDED.items()},
    "PRelu": OPERATORS["PRelu"].compute,  # the reference's has no number where infinity meets a slope of zero
    "AffineGrid": _affine_grid,
    "Conv": _conv,
    "DeformConv": _deform_conv,
    # The reference's reduces other axes than it should where there's one spatial axis, or three.
    "GlobalMaxPool": lambda x: x.max(axis=tuple(range(2, x.ndim)), keepdims=True),
    "ConvTranspose": _conv_transpose,
    # The reference has none.
    "GlobalLpPool": lambda x, p=2: (np.abs(x) ** p).sum(axis=tuple(range(2, x.ndim)), keepdims=True) ** (1.0 / p),
    # The reference's doesn't broadcast its first operand.
    "Mean": lambda *operands: sum(operands) / len(operands),
    "OneHot": _one_hot,
    "Pad": _pad,
    # The reference's adds numbers up without their magnitudes.
    "LpNormalization": lambda x, axis=-1, p=2: OPERATORS["LpNormalization"].compute(x, axes=axis, p=p),
    "MeanVarianceNormalization": _mean_variance_normalization,
    "GroupNormalization": _group_normalization,
    "LRN": _local_response,
}


def corrections() -> list[type]:
    """As `ReferenceEvaluator(new_ops=...)` takes them."""
    return [GridSample, LpPool, *(_made(*item) for item in _FUNCTIONS.items())]

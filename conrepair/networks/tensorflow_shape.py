"""Operators of TensorFlow that move numbers around, and reductions."""

from __future__ import annotations

from typing import Any

import numpy as np

from conrepair.graph.layer_graph import Attribute
from conrepair.networks.parts import LayerPart, slice_parts
from conrepair.networks.tensorflow_rules import Rule, TensorflowOperation

__all__ = ["RULES"]


def _reshape(operation: TensorflowOperation) -> list[LayerPart]:
    return [LayerPart("Reshape", {"shape": operation.result()})]


def _transpose(operation: TensorflowOperation) -> list[LayerPart]:
    return [LayerPart("Transpose", {"perm": operation.numbers(1)})]


def _reduction(op: str) -> Rule:
    def rule(operation: TensorflowOperation) -> list[LayerPart]:
        axes = operation.axes(1, len(operation.sizes(0)))
        return [LayerPart(op, {"axes": axes, "keepdims": bool(operation.attribute("keep_dims"))})]

    return rule


def _arg(op: str) -> Rule:
    def rule(operation: TensorflowOperation) -> list[LayerPart]:
        (axis,) = operation.axes(1, len(operation.sizes(0)))
        return [LayerPart(op, {"axis": axis, "keepdims": False})]

    return rule


def _cumsum(operation: TensorflowOperation) -> list[LayerPart]:
    (axis,) = operation.axes(1, len(operation.sizes(0)))
    backwards = {name: bool(operation.attribute(name)) for name in ("exclusive", "reverse")}
    return [LayerPart("CumSum", {"axis": axis, **backwards})]


_BLOCKS = {"SpaceToBatchND": ("SpaceToBatch", "pads"), "BatchToSpaceND": ("BatchToSpace", "crops")}
_MODES = {"Pad": "constant", "PadV2": "constant", "MirrorPad": ""}


def _pad(operation: TensorflowOperation) -> list[LayerPart]:
    pairs = np.reshape(operation.numbers(1), (-1, 2))
    mode = _MODES[operation.definition.op] or str(operation.attribute("mode")).lower()
    value = float(operation.parameter(2).numpy()) if operation.definition.op == "PadV2" else 0.0
    pads = (*map(int, pairs[:, 0]), *map(int, pairs[:, 1]))
    return [LayerPart("Pad", {"pads": pads, "mode": mode, "value": value}, reads=(0,))]


def _batches(operation: TensorflowOperation) -> list[LayerPart]:
    """Blocks of pictures that are pictures of their own: how dilated convolutions are written."""
    op, name = _BLOCKS[operation.definition.op]
    block, margins = map(int, operation.numbers(1)), np.reshape(operation.numbers(2), (-1, 2))
    both = (*map(int, margins[:, 0]), *map(int, margins[:, 1]))
    return [LayerPart(op, {"block": tuple(block), name: both}, reads=(0,))]


def _concat(operation: TensorflowOperation) -> list[LayerPart]:
    count = len(operation.inputs) - 1
    (axis,) = operation.axes(count, len(operation.result_sizes()))
    constants = [index for index in range(count) if not operation.is_tensor(index)]
    if constants and constants != [count - 1]:
        raise ValueError("with constants that aren't the last piece")
    parameters = {"operand": operation.parameter(count - 1)} if constants else {}
    return [LayerPart("Concat", {"axis": axis}, parameters)]


def _stack(operation: TensorflowOperation) -> list[LayerPart]:
    if not all(map(operation.is_tensor, range(len(operation.inputs)))):
        raise ValueError("with constants")
    return [LayerPart("Stack", {"axis": int(operation.attribute("axis")) % len(operation.result_sizes())})]


def _split(operation: TensorflowOperation) -> list[LayerPart]:
    """All pieces must be read, else those that aren't would have to be tensors."""
    at = 0 if operation.definition.op == "Split" else 2
    value = 1 - at if at == 0 else 0
    shape = operation.sizes(value)
    (axis,) = operation.axes(at, len(shape))
    count = int(operation.attribute("num_split"))
    if len(operation.outputs) < count:
        raise ValueError("not all pieces are read")
    pieces = [operation.result(index) for index in range(count)]
    return [LayerPart("Split", {"axis": axis, "sizes": tuple(piece[axis] for piece in pieces if piece)})]


def _strided_slice(operation: TensorflowOperation) -> list[LayerPart]:
    begins, ends, strides = (operation.numbers(index) for index in (1, 2, 3))
    masks = {
        name: int(operation.attribute(f"{name}_mask"))
        for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    }

    def key(index: int) -> Any:
        if masks["ellipsis"] >> index & 1:
            return Ellipsis
        if masks["new_axis"] >> index & 1:
            return None
        if masks["shrink_axis"] >> index & 1:
            return begins[index]
        begin = None if masks["begin"] >> index & 1 else begins[index]
        end = None if masks["end"] >> index & 1 else ends[index]
        return slice(begin, end, strides[index])

    return slice_parts(operation.shape(0), operation.result(), [key(index) for index in range(len(begins))])


def _slice(operation: TensorflowOperation) -> list[LayerPart]:
    begins, sizes = operation.numbers(1), operation.result_sizes()
    keys = [slice(begin, begin + size) for begin, size in zip(begins, sizes, strict=True)]
    return slice_parts(operation.shape(0), sizes, keys)


def _gather(operation: TensorflowOperation) -> list[LayerPart]:
    if "batch_dims" in operation.definition.attr and operation.attribute("batch_dims"):
        raise ValueError("of each batch its own")
    axis = operation.numbers(2)[0] if operation.definition.op == "GatherV2" else 0
    parameters = {} if operation.is_tensor(0) else {"table": operation.parameter(0)}
    if not operation.is_tensor(1):
        parameters["indices"] = operation.parameter(1)
    if axis < 0:
        axis += len(operation.sizes(0))
    return [LayerPart("Gather", {"axis": axis}, parameters)]


def _tile(operation: TensorflowOperation) -> list[LayerPart]:
    return [LayerPart("Tile", {"repeats": operation.numbers(1)}, reads=(0,))]


def _expand(operation: TensorflowOperation) -> list[LayerPart]:
    return [LayerPart("Expand", {"shape": operation.result()}, reads=(0,))]


_RESIZES = {"ResizeBilinear": "linear", "ResizeNearestNeighbor": "nearest", "ResizeBicubic": "cubic"}


def _resize(operation: TensorflowOperation) -> list[LayerPart]:
    before, after = operation.sizes(0), operation.result_sizes()
    corners, half = bool(operation.attribute("align_corners")), bool(operation.attribute("half_pixel_centers"))
    mode = _RESIZES[operation.definition.op]
    attributes: dict[str, Attribute] = {
        "mode": mode,
        "coordinate_transformation_mode": "align_corners" if corners else "half_pixel" if half else "asymmetric",
        "nearest_mode": "round_prefer_ceil" if corners or half else "floor",
        "cubic_coeff_a": -0.5 if half and mode == "cubic" else -0.75,
        "scales": tuple(new / old for new, old in zip(after, before, strict=True)),
    }
    return [LayerPart("Resize", attributes, channels_last=True)]


def _depth_to_space(operation: TensorflowOperation) -> list[LayerPart]:
    attributes: dict[str, Attribute] = {"blocksize": int(operation.attribute("block_size"))}
    if operation.definition.op == "DepthToSpace":
        attributes["mode"] = "DCR"
    return [LayerPart(operation.definition.op, attributes, channels_last=operation.channels_last)]


def _where(operation: TensorflowOperation) -> list[LayerPart]:
    roles = ("condition", "x", "y")
    parameters = {
        role: operation.parameter(index) for index, role in enumerate(roles) if not operation.is_tensor(index)
    }
    return [LayerPart("Where", {}, parameters)]


_REDUCTIONS = {"Mean": "ReduceMean", "Sum": "ReduceSum", "Max": "ReduceMax", "Min": "ReduceMin", "Prod": "ReduceProd"}

RULES: dict[str, Rule] = {
    **dict.fromkeys(("Reshape", "Squeeze", "ExpandDims"), _reshape),
    "Transpose": _transpose,
    **{name: _reduction(op) for name, op in _REDUCTIONS.items()},
    "ArgMax": _arg("ArgMax"),
    "ArgMin": _arg("ArgMin"),
    "Cumsum": _cumsum,
    **dict.fromkeys(_MODES, _pad),
    **dict.fromkeys(_BLOCKS, _batches),
    "ConcatV2": _concat,
    "Pack": _stack,
    "Split": _split,
    "SplitV": _split,
    "StridedSlice": _strided_slice,
    "Slice": _slice,
    **dict.fromkeys(("Gather", "GatherV2", "ResourceGather"), _gather),
    "Tile": _tile,
    "BroadcastTo": _expand,
    **dict.fromkeys(_RESIZES, _resize),
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), _depth_to_space),
    "SelectV2": _where,
}

"""ONNX's operators that move elements, in the vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from conrepair.formats.onnx.read.call import OnnxCall
from conrepair.formats.onnx.read.products import emit_pieces
from conrepair.ground.graph.layer_graph import Attribute


def _reshape(call: OnnxCall) -> None:
    call.emit(call.varying(), {"shape": call.output_shape()}, operator="Reshape")


def _expand(call: OnnxCall) -> None:
    call.emit(call.varying(), {"shape": call.output_shape()}, call.parameters({0: "operand"}))


def _transpose(call: OnnxCall) -> None:
    rank = call.rank(0)
    reverse = None if rank is None else tuple(reversed(range(rank)))
    call.emit(call.varying(), {"perm": call.attribute("perm", reverse)})


def _concat(call: OnnxCall) -> None:
    first = next(index for index in range(call.count) if call.rank(index) is not None or index == call.count - 1)
    axis = call.axis(int(call.attribute("axis", 1)), first)
    # A constant piece at the end keeps its place too.
    emit_pieces(call, {"axis": axis})


def _split(call: OnnxCall) -> None:
    axis = call.axis(int(call.attribute("axis", 0)))
    given = call.numbers(1) if call.given(1) else call.attribute("split")
    sizes = None if given is None else tuple(int(size) for size in given)
    if sizes is None and not call.given(1):
        shapes = [call.output_shape(index) for index in range(len(call.outputs))]
        found = [shape[axis] for shape in shapes if shape is not None]
        sizes = tuple(found) if len(found) == len(shapes) else None
    call.emit(call.varying(), {"axis": axis, "sizes": sizes})


def _slice(call: OnnxCall) -> None:
    if call.has_attribute("starts"):
        columns = [call.attribute(name) for name in ("starts", "ends", "axes")] + [None]
    else:
        columns = [None if (array := call.numbers(index)) is None else array.tolist() for index in range(1, 5)]
    starts, ends, axes, steps = columns
    if starts is None or ends is None or any(call.given(place) and columns[place - 1] is None for place in (3, 4)):
        call.emit(call.varying())
        return
    axes = [call.axis(int(axis)) for axis in (range(len(starts)) if axes is None else axes)]
    steps = [1] * len(starts) if steps is None else [int(step) for step in steps]
    sizes = call.sizes(0)
    ranges = [
        _range(int(start), int(end), step, None if sizes is None else sizes[axis])
        for start, end, step, axis in zip(starts, ends, steps, axes, strict=True)
    ]
    attributes: dict[str, Attribute] = {
        "starts": tuple(start for start, _ in ranges),
        "ends": tuple(end for _, end in ranges),
        "axes": tuple(axes),
        "steps": tuple(steps),
    }
    call.emit(call.varying(), attributes)


def _range(start: int, end: int, step: int, size: int | None) -> tuple[int, int]:
    """Begin and end within an axis, where its size is known; backwards, the end in front of it is -size - 1."""
    if size is None:
        return start, end
    first, last, _ = slice(start, end, step).indices(size)
    return first, last if last >= 0 else -size - 1


def _tile(call: OnnxCall) -> None:
    if call.opset < 6:  # it had the axis as an input
        return
    repeats = call.numbers(1)
    call.emit(call.varying(), {"repeats": None if repeats is None else tuple(map(int, repeats))})


def _pad(call: OnnxCall) -> None:
    pads = call.numbers(1) if call.given(1) else call.attribute("pads", call.attribute("paddings"))
    axes, rank = call.numbers(3), call.rank(0)
    if call.given(3) and axes is None:
        return
    flat = None if pads is None else [int(number) for number in pads]
    if flat is not None and axes is not None:
        flat = None if rank is None else _all_axes(flat, [call.axis(int(axis)) for axis in axes], rank)
    mode = str(call.attribute("mode", "constant"))
    value = call.numbers(2) if call.given(2) else np.array(call.attribute("value", 0.0))
    attributes: dict[str, Attribute] = {
        "pads": None if flat is None else tuple(flat),
        "mode": mode,
        "value": None if value is None else value.reshape(-1)[0].item(),
    }
    call.emit([call.input(index) for index in range(4)], attributes)


def _all_axes(pads: Sequence[int], axes: Sequence[int], rank: int) -> list[int]:
    result = [0] * 2 * rank
    for place, axis in enumerate(axes):
        result[axis], result[axis + rank] = pads[place], pads[place + len(axes)]
    return result


def _gather(call: OnnxCall) -> None:
    axis = call.axis(int(call.attribute("axis", 0)))
    call.emit(call.varying(), {"axis": axis}, call.parameters({0: "table", 1: "indices"}))


def _shape(call: OnnxCall) -> None:
    if not call.has_attribute("end") and not call.attribute("start", 0):
        call.emit_alike()


_INEXPRESSIBLE = {  # attributes of Resize, with the values that the vocabulary's operator is for
    "antialias": 0,
    "exclude_outside": 0,
    "keep_aspect_ratio_policy": "stretch",
}


def _resize(call: OnnxCall) -> None:
    mode, transformation = _text(call, "mode", "nearest"), _text(call, "coordinate_transformation_mode", "")
    other = any(call.attribute(name, usual) != usual for name, usual in _INEXPRESSIBLE.items())
    if other or transformation == "tf_crop_and_resize":
        return
    old = call.operator == "Upsample" or call.opset < 11
    attributes: dict[str, Attribute] = {
        "mode": mode,
        "coordinate_transformation_mode": "asymmetric" if old else transformation or "half_pixel",
        "nearest_mode": "floor" if old else _text(call, "nearest_mode", "round_prefer_floor"),
        "cubic_coeff_a": float(call.attribute("cubic_coeff_a", -0.75)),
        "scales": _scales(call, 1 if old else 2),
    }
    call.emit(call.varying(), attributes, operator="Resize")


def _scales(call: OnnxCall, place: int) -> tuple[float, ...] | None:
    """A factor for each axis: as given, or from the sizes."""
    given = call.numbers(place) if call.given(place) else np.array(call.attribute("scales", ()))
    before, after, rank = call.shape(0), call.output_shape(), call.rank(0)
    if given is not None and len(given):
        axes = call.attribute("axes")
        if axes is None:
            return tuple(map(float, given))
        result = [1.0] * (rank or 0)
        for axis, factor in zip(axes, given, strict=True):
            result[axis] = float(factor)
        return tuple(result)
    if before is None or after is None:
        return None
    return tuple(new / old for new, old in zip(after, before, strict=True))


def _text(call: OnnxCall, name: str, usual: str) -> str:
    return str(call.attribute(name, usual))


RULES: Mapping[str, Callable[[OnnxCall], None]] = {
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), OnnxCall.emit_alike),
    **dict.fromkeys(("Flatten", "Reshape", "Squeeze", "Unsqueeze"), _reshape),
    **dict.fromkeys(("Resize", "Upsample"), _resize),
    "Concat": _concat,
    "Expand": _expand,
    "Gather": _gather,
    "Pad": _pad,
    "Shape": _shape,
    "Slice": _slice,
    "Split": _split,
    "Tile": _tile,
    "Transpose": _transpose,
}

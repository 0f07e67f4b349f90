"""TFLite's operators that rearrange, join, cut, reduce or resize arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conrepair.graph.layer_graph import Attribute
from conrepair.networks.tflite_operator import REDUCTIONS, OperatorView, Rule, TfliteStep

__all__ = ["RULES"]


def _reduction(op: str) -> Rule:
    def rule(view: OperatorView) -> TfliteStep | None:
        axes = view.integers(1)
        if axes is None:
            return None
        chosen = tuple(sorted({view.axis(axis) for axis in axes}))
        return TfliteStep(op, view.names(0), {"axes": chosen, "keepdims": bool(view.options.keepDims)})

    return rule


def _extreme(op: str) -> Rule:
    def rule(view: OperatorView) -> TfliteStep | None:
        axes = view.integers(1)
        if axes is None:
            return None
        return TfliteStep(op, view.names(0), {"axis": view.axis(axes[0]), "keepdims": False})

    return rule


def _cumulative_sum(view: OperatorView) -> TfliteStep | None:
    axes = view.integers(1)
    if axes is None:
        return None
    options = view.options
    return TfliteStep(
        "CumSum",
        view.names(0),
        {"axis": view.axis(axes[0]), "exclusive": bool(options.exclusive), "reverse": bool(options.reverse)},
    )


def _to_shape(op: str) -> Rule:
    def rule(view: OperatorView) -> TfliteStep | None:
        shape = view.result_shape()
        if shape is None or not view.varies(0):
            return None
        return TfliteStep(op, view.names(0), {"shape": shape})

    return rule


def _transpose(view: OperatorView) -> TfliteStep | None:
    order = view.integers(1)
    if order is None:
        return None
    return TfliteStep("Transpose", view.names(0), {"perm": tuple(view.axis(axis) for axis in order)})


def _pad(view: OperatorView) -> TfliteStep | None:
    pads, value = view.integers(1), view.number(2) if view.has(2) else 0.0
    if pads is None or value is None:
        return None
    return _padding(view, pads, "constant", value)


def _mirror_pad(view: OperatorView) -> TfliteStep | None:
    pads = view.integers(1)
    return None if pads is None else _padding(view, pads, "symmetric" if view.options.mode else "reflect", 0.0)


def _padding(view: OperatorView, pads: Sequence[int], mode: str, value: float) -> TfliteStep:
    return TfliteStep("Pad", view.names(0), {"pads": (*pads[::2], *pads[1::2]), "mode": mode, "value": value})


def _slice(view: OperatorView) -> TfliteStep | None:
    begins, sizes, shape = view.integers(1), view.integers(2), view.shape(0)
    if begins is None or sizes is None or shape is None:
        return None
    ends = [begin + size if size >= 0 else full for begin, size, full in zip(begins, sizes, shape, strict=True)]
    return _cut(view, shape, begins, ends, (1,) * len(begins))


def _cut(
    view: OperatorView, shape: Sequence[int], starts: Sequence[int], ends: Sequence[int], steps: Sequence[int]
) -> TfliteStep:
    """Only the axes that are cut."""
    axes = [axis for axis, size in enumerate(shape) if (starts[axis], ends[axis], steps[axis]) != (0, size, 1)]
    attributes: dict[str, Attribute] = {
        name: tuple(values[axis] for axis in axes)
        for name, values in (("starts", starts), ("ends", ends), ("steps", steps))
    }
    # An end before the first element counts from the end of the array in the vocabulary.
    attributes["ends"] = tuple(ends[axis] if ends[axis] >= 0 else -shape[axis] - 1 for axis in axes)
    size = [len(range(start, end, step)) for start, end, step in zip(starts, ends, steps, strict=True)]
    return TfliteStep("Slice", view.names(0), {**attributes, "axes": tuple(axes)}, shape=tuple(size))


def _reverse(view: OperatorView) -> TfliteStep | None:
    axes, shape = view.integers(1), view.shape(0)
    if axes is None or shape is None:
        return None
    turned = {view.axis(axis) for axis in axes}
    bounds = [(size - 1, -1, -1) if axis in turned else (0, size, 1) for axis, size in enumerate(shape)]
    return _cut(view, shape, *([bound[part] for bound in bounds] for part in range(3)))


def _strided_slice(view: OperatorView) -> Sequence[TfliteStep] | None:
    begins, ends, strides = (view.integers(position) for position in (1, 2, 3))
    shape, result, options = view.shape(0), view.result_shape(), view.options
    if begins is None or ends is None or strides is None or shape is None or result is None:
        return None
    cuts: list[slice] = []
    for position, (begin, end, stride) in enumerate(zip(begins, ends, strides, strict=True)):
        bit = 1 << position
        if options.ellipsisMask & bit:
            behind = sum(not options.newAxisMask & 1 << later for later in range(position + 1, len(begins)))
            cuts += [slice(None)] * (len(shape) - len(cuts) - behind)
        elif options.newAxisMask & bit:
            continue
        elif options.shrinkAxisMask & bit:
            at = begin % shape[len(cuts)]
            cuts.append(slice(at, at + 1))
        else:
            last = begin + end if options.offset else end
            cuts.append(
                slice(None if options.beginMask & bit else begin, None if options.endMask & bit else last, stride)
            )
    cuts += [slice(None)] * (len(shape) - len(cuts))
    bounds = [cut.indices(size) for cut, size in zip(cuts, shape, strict=True)]
    starts, stops, steps = ([bound[part] for bound in bounds] for part in range(3))
    step = _cut(view, shape, starts, stops, steps)
    return [step] if step.shape == result else [step, TfliteStep("Reshape", ("",), {"shape": result})]


def _split(view: OperatorView) -> TfliteStep | None:
    axes, results = view.integers(0), [view.result_shape(place) for place in range(len(view.outputs))]
    return _splitting(view, axes, results, 1)


def _split_v(view: OperatorView) -> TfliteStep | None:
    axes, results = view.integers(2), [view.result_shape(place) for place in range(len(view.outputs))]
    return _splitting(view, axes, results, 0)


def _splitting(
    view: OperatorView, axes: Sequence[int] | None, results: Sequence[Sequence[int] | None], data: int
) -> TfliteStep | None:
    known = [shape for shape in results if shape is not None]
    if axes is None or len(known) < len(results):
        return None
    axis = view.axis(axes[0], data)
    return TfliteStep("Split", view.names(data), {"axis": axis, "sizes": tuple(shape[axis] for shape in known)})


def _concatenation(view: OperatorView) -> TfliteStep:
    constant = [place for place in range(len(view.inputs)) if view.is_constant(place)]
    names = tuple("" if place in constant else view.names(place)[0] for place in range(len(view.inputs)))
    roles = [f"operand_{count}" if count else "operand" for count in range(len(constant))]
    parameters = view.optional(**dict(zip(roles, constant, strict=True)))
    return TfliteStep("Concat", names, {"axis": view.axis(view.options.axis)}, parameters)


def _pack(view: OperatorView) -> TfliteStep | None:
    if any(view.is_constant(place) for place in range(len(view.inputs))):
        return None
    return TfliteStep("Stack", view.names(), {"axis": view.options.axis % (view.rank() + 1)})


def _tile(view: OperatorView) -> TfliteStep | None:
    repeats = view.integers(1)
    return None if repeats is None else TfliteStep("Tile", view.names(0), {"repeats": repeats})


def _resize(mode: str) -> Rule:
    def rule(view: OperatorView) -> TfliteStep | None:
        before, after, options = view.shape(0), view.result_shape(), view.options
        if before is None or after is None or (options.alignCorners and options.halfPixelCenters):
            return None
        coordinates, nearest = "asymmetric", "floor"
        if options.alignCorners:
            coordinates, nearest = "align_corners", "round_prefer_ceil"
        elif options.halfPixelCenters:
            coordinates, nearest = "half_pixel", "round_prefer_ceil"
        attributes: dict[str, Attribute] = {
            "mode": mode,
            "coordinate_transformation_mode": coordinates,
            "nearest_mode": nearest if mode == "nearest" else "round_prefer_floor",
            "cubic_coeff_a": -0.75,
            "scales": tuple(new / old for old, new in zip(before, after, strict=True)),
        }
        return TfliteStep("Resize", view.names(0), attributes, channels_last=True)

    return rule


def _depth_to_space(view: OperatorView) -> TfliteStep:
    attributes: dict[str, Attribute] = {"blocksize": int(view.options.blockSize), "mode": "DCR"}
    return TfliteStep("DepthToSpace", view.names(0), attributes, channels_last=True)


def _space_to_depth(view: OperatorView) -> TfliteStep:
    return TfliteStep("SpaceToDepth", view.names(0), {"blocksize": int(view.options.blockSize)}, channels_last=True)


def _batches(op: str, name: str) -> Rule:
    """Blocks of pictures that are pictures of their own: how dilated convolutions are written."""

    def rule(view: OperatorView) -> TfliteStep | None:
        block, margins = view.integers(1), view.integers(2)
        if block is None or margins is None:
            return None
        return TfliteStep(op, view.names(0), {"block": tuple(block), name: (*margins[::2], *margins[1::2])})

    return rule


RULES: Mapping[str, Rule] = {
    **{kind: _reduction(op) for kind, op in REDUCTIONS.items()},
    "REDUCE_PROD": _reduction("ReduceProd"),
    "ARG_MAX": _extreme("ArgMax"),
    "ARG_MIN": _extreme("ArgMin"),
    "CUMSUM": _cumulative_sum,
    "RESHAPE": _to_shape("Reshape"),
    "SQUEEZE": _to_shape("Reshape"),
    "EXPAND_DIMS": _to_shape("Reshape"),
    "BROADCAST_TO": _to_shape("Expand"),
    "TRANSPOSE": _transpose,
    "PAD": _pad,
    "PADV2": _pad,
    "MIRROR_PAD": _mirror_pad,
    "SLICE": _slice,
    "STRIDED_SLICE": _strided_slice,
    "REVERSE_V2": _reverse,
    "SPLIT": _split,
    "SPLIT_V": _split_v,
    "CONCATENATION": _concatenation,
    "PACK": _pack,
    "TILE": _tile,
    "SHAPE": lambda view: TfliteStep("Shape", view.names(0)),
    "RESIZE_BILINEAR": _resize("linear"),
    "RESIZE_NEAREST_NEIGHBOR": _resize("nearest"),
    "DEPTH_TO_SPACE": _depth_to_space,
    "SPACE_TO_DEPTH": _space_to_depth,
    "SPACE_TO_BATCH_ND": _batches("SpaceToBatch", "pads"),
    "BATCH_TO_SPACE_ND": _batches("BatchToSpace", "crops"),
}

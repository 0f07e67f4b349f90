"""The operators that TensorFlow and TFLite have both, by TensorFlow's names: read by the same rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conrepair.graph.layer_graph import Attribute
from conrepair.graph.operators import COMMUTATIVE, FUNCTIONS, OPERATORS
from conrepair.networks.parts import LayerPart, slice_parts
from conrepair.networks.tensorflow_convolution import convolution, matrix_product
from conrepair.networks.tensorflow_view import Rule, TensorflowView

__all__ = [
    *("BINARY", "COORDINATES", "NEAREST", "REDUCTIONS", "RESIZES", "RULES", "UNARY"),
    *("along_last", "backwards", "binary", "cast", "concatenation", "expanded", "fixed", "gathered"),
    *("local_response", "reduction", "reshaped", "resized", "strided_slice", "where"),
]

UNARY = {**{name: name for name in (*FUNCTIONS, "Elu", "Selu")}, "LogicalNot": "Not"}
"""What operators of one tensor are in the vocabulary; those that a format hasn't included."""

BINARY = {
    **{name: name for name in ("Add", "Sub", "Mul", "Div", "Pow", "Equal", "Greater", "Less")},
    "Maximum": "Max",
    "Minimum": "Min",
    "FloorMod": "Mod",
    "GreaterEqual": "GreaterOrEqual",
    "LessEqual": "LessOrEqual",
    "LogicalAnd": "And",
    "LogicalOr": "Or",
}
REDUCTIONS = {name: f"Reduce{name}" for name in ("Mean", "Sum", "Max", "Min", "Prod")}
RESIZES = {"ResizeBilinear": "linear", "ResizeNearestNeighbor": "nearest"}


def fixed(op: str, attributes: Mapping[str, Attribute] | None = None) -> Rule:
    """An operator that has no settings, or always the same: the vocabulary's own."""
    return lambda view: [LayerPart(op, dict(OPERATORS[op].attributes if attributes is None else attributes))]


def binary(op: str) -> Rule:
    """An elementwise operator of two."""

    def rule(view: TensorflowView) -> list[LayerPart]:
        first = view.is_constant(0)
        parameters = {"operand": view.parameter(0 if first else 1)} if first or view.is_constant(1) else {}
        return [LayerPart(op, {"constant_first": first and op not in COMMUTATIVE}, parameters)]

    return rule


def along_last(op: str) -> Rule:
    """An operator along the last axis."""
    return lambda view: [LayerPart(op, {"axis": view.rank() - 1})]


def cast(view: TensorflowView) -> list[LayerPart]:
    """Numbers in another type."""
    to = view.option("DstT")
    return [LayerPart("Identity")] if to == view.option("SrcT") else [LayerPart("Cast", {"to": to})]


def _leaky(view: TensorflowView) -> list[LayerPart]:
    """A slope below zero."""
    return [LayerPart("LeakyRelu", {"alpha": float(view.option("alpha"))})]


def local_response(view: TensorflowView) -> list[LayerPart]:
    """The vocabulary's alpha is of the sum over all neighbours, TensorFlow's of each."""
    size = 2 * int(view.option("depth_radius")) + 1
    attributes: dict[str, Attribute] = {name: float(view.option(name)) for name in ("alpha", "beta", "bias")}
    attributes |= {"alpha": float(view.option("alpha")) * size, "size": size}
    return [LayerPart("LRN", attributes, channels_last=True)]


def where(view: TensorflowView) -> list[LayerPart]:
    """One of two tensors' numbers each."""
    return [LayerPart("Where", {}, view.optional(condition=0, x=1, y=2))]


def reshaped(view: TensorflowView) -> list[LayerPart]:
    """The same numbers in another shape."""
    if view.is_constant(0):
        raise ValueError("numbers of their own in a shape that is computed")
    return [LayerPart("Reshape", {"shape": view.result()})]


def expanded(view: TensorflowView) -> list[LayerPart]:
    """The same numbers several times, as arithmetic repeats them."""
    if view.is_constant(0):
        raise ValueError("numbers of their own in a shape that is computed")
    return [LayerPart("Expand", {"shape": view.result()}, reads=(0,))]


def _transposed(view: TensorflowView) -> list[LayerPart]:
    """Axes in another order."""
    order = view.numbers(1)
    return [LayerPart("Transpose", {"perm": tuple(axis % len(order) for axis in order)})]


def reduction(op: str) -> Rule:
    """Along axes that a constant holds."""
    return lambda view: [LayerPart(op, {"axes": view.axes(1), "keepdims": bool(view.option("keep_dims"))})]


def _place(op: str) -> Rule:
    """Where the largest or the smallest number is."""
    return lambda view: [LayerPart(op, {"axis": view.axes(1)[0], "keepdims": False})]


def _cumulative_sum(view: TensorflowView) -> list[LayerPart]:
    """Sums of all numbers up to each one."""
    flags = {name: bool(view.option(name)) for name in ("exclusive", "reverse")}
    return [LayerPart("CumSum", {"axis": view.axes(1)[0], **flags})]


def _padded(view: TensorflowView) -> list[LayerPart]:
    """A frame of one number: zero, or the third operand."""
    value = float(view.parameter(2).numpy().reshape(-1)[0]) if view.has(2) else 0.0
    return [LayerPart("Pad", {"pads": view.margins(1), "mode": "constant", "value": value}, reads=(0,))]


def _mirrored(view: TensorflowView) -> list[LayerPart]:
    """A frame of the numbers inside."""
    mode = str(view.option("mode")).lower()
    return [LayerPart("Pad", {"pads": view.margins(1), "mode": mode, "value": 0.0}, reads=(0,))]


def _batches(op: str, name: str) -> Rule:
    """Blocks of pictures that are pictures of their own: how dilated convolutions are written."""
    return lambda view: [LayerPart(op, {"block": view.numbers(1), name: view.margins(2)}, reads=(0,))]


def concatenation(view: TensorflowView, count: int, axis: int) -> list[LayerPart]:
    """Pieces behind one another; where a constant one stands, no tensor is read.

    Args:
        view: The operator.
        count: How many of its operands are pieces.
        axis: Counted from 0.
    """
    constants = [position for position in range(count) if view.is_constant(position)]
    roles = [f"operand_{number}" if number else "operand" for number in range(len(constants))]
    parameters = view.optional(**dict(zip(roles, constants, strict=True)))
    return [LayerPart("Concat", {"axis": axis}, parameters, reads=tuple(range(count)))]


def _stacked(view: TensorflowView) -> list[LayerPart]:
    """Tensors along a new axis."""
    if any(view.is_constant(position) for position in range(int(view.option("N")))):
        raise ValueError("with constants")
    return [LayerPart("Stack", {"axis": int(view.option("axis")) % (view.rank() + 1)})]


def _split(axis: int, data: int) -> Rule:
    """Pieces of a tensor.

    All of them must be read, else those that aren't would have to be tensors.

    Args:
        axis: The operand that says the axis.
        data: The operand that's split.
    """

    def rule(view: TensorflowView) -> list[LayerPart]:
        (along,) = view.axes(axis, data)
        pieces = [view.result_sizes(position) for position in range(int(view.option("num_split")))]
        return [LayerPart("Split", {"axis": along, "sizes": tuple(piece[along] for piece in pieces)}, reads=(data,))]

    return rule


def strided_slice(view: TensorflowView, *, relative: bool = False) -> list[LayerPart]:
    """Python's indexing, whose keys are bits of masks; ends may be relative to the begins."""
    begins, ends, strides = (view.numbers(position) for position in (1, 2, 3))
    if relative:
        ends = tuple(begin + end for begin, end in zip(begins, ends, strict=True))
    masks = {
        name: int(view.option(f"{name}_mask")) for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    }

    def key(index: int) -> Any:
        said = {name for name, mask in masks.items() if mask >> index & 1}
        if "ellipsis" in said:
            return Ellipsis
        if "new_axis" in said:
            return None
        if "shrink_axis" in said:
            return begins[index]
        begin, end = (None if name in said else bound[index] for name, bound in (("begin", begins), ("end", ends)))
        return slice(begin, end, strides[index])

    return slice_parts(view.shape(0), view.result(), [key(index) for index in range(len(begins))])


def _sliced(view: TensorflowView) -> list[LayerPart]:
    """Begins and sizes."""
    keys = [slice(begin, begin + size) for begin, size in zip(view.numbers(1), view.result_sizes(), strict=True)]
    return slice_parts(view.shape(0), view.result(), keys)


def backwards(view: TensorflowView) -> list[LayerPart]:
    """Some axes backwards."""
    axes = view.axes(1)
    keys = [slice(None, None, -1 if axis in axes else 1) for axis in range(view.rank())]
    return slice_parts(view.shape(0), view.result(), keys)


def gathered(view: TensorflowView, axis: int) -> list[LayerPart]:
    """Slices of a table along an axis."""
    return [LayerPart("Gather", {"axis": axis if axis >= 0 else view.axis(axis)}, view.optional(table=0, indices=1))]


def _tiled(view: TensorflowView) -> list[LayerPart]:
    """The same numbers several times."""
    return [LayerPart("Tile", {"repeats": view.numbers(1)}, reads=(0,))]


COORDINATES = {(True, False): "align_corners", (False, True): "half_pixel", (False, False): "asymmetric"}
"""Where numbers are between others, by whether corners are aligned and places are the middles of pixels."""

NEAREST = {places: "floor" if name == "asymmetric" else "round_prefer_ceil" for places, name in COORDINATES.items()}
"""Which of two numbers is the nearest one, by the same."""


def resized(mode: str) -> Rule:
    """Pictures of another size."""

    def rule(view: TensorflowView) -> list[LayerPart]:
        corners, half = bool(view.option("align_corners")), bool(view.option("half_pixel_centers"))
        attributes: dict[str, Attribute] = {
            "mode": mode,
            "coordinate_transformation_mode": COORDINATES[corners, half],
            "nearest_mode": NEAREST[corners, half] if mode == "nearest" else "round_prefer_floor",
            "cubic_coeff_a": -0.5 if half and mode == "cubic" else -0.75,
            "scales": tuple(new / old for new, old in zip(view.result_sizes(), view.sizes(0), strict=True)),
        }
        return [LayerPart("Resize", attributes, channels_last=True)]

    return rule


def _block_mover(op: str, **settings: Attribute) -> Rule:
    """Blocks of pictures as channels, or back."""
    return lambda view: [
        LayerPart(op, {"blocksize": int(view.option("block_size")), **settings}, channels_last=view.channels_last)
    ]


RULES: Mapping[str, Rule] = {
    **{name: fixed(op) for name, op in UNARY.items()},
    **{name: binary(op) for name, op in BINARY.items()},
    **{name: reduction(op) for name, op in REDUCTIONS.items()},
    **{name: along_last(name) for name in ("Softmax", "LogSoftmax")},
    **{name: _place(name) for name in ("ArgMax", "ArgMin")},
    **{name: resized(mode) for name, mode in RESIZES.items()},
    **dict.fromkeys(("Reshape", "Squeeze", "ExpandDims"), reshaped),
    **dict.fromkeys(("Pad", "PadV2"), _padded),
    **dict.fromkeys(("Conv2D", "Conv3D"), convolution),
    "BatchMatMul": matrix_product("adj_x", "adj_y"),
    "BatchToSpaceND": _batches("BatchToSpace", "crops"),
    "BroadcastTo": expanded,
    "Cast": cast,
    "Cumsum": _cumulative_sum,
    "DepthToSpace": _block_mover("DepthToSpace", mode="DCR"),
    "LeakyRelu": _leaky,
    "MirrorPad": _mirrored,
    "Pack": _stacked,
    "Relu6": fixed("Clip", {"min": 0.0, "max": 6.0}),
    "SelectV2": where,
    "Slice": _sliced,
    "SpaceToBatchND": _batches("SpaceToBatch", "pads"),
    "SpaceToDepth": _block_mover("SpaceToDepth"),
    "Split": _split(axis=0, data=1),
    "SplitV": _split(axis=2, data=0),
    "StridedSlice": strided_slice,
    "Tile": _tiled,
    "Transpose": _transposed,
}
"""By TensorFlow's names."""

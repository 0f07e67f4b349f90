"""The operators that TensorFlow and TFLite have both, by TensorFlow's names: read by the same rules."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from conrepair.formats.networks.parts import PAIRS, REDUCTIONS, LayerPart, Rules, operand_roles, slice_parts
from conrepair.formats.tensorflow.read.convolution import convolution, matrix_product
from conrepair.formats.tensorflow.read.view import TensorflowView
from conrepair.ground.graph.layer_graph import Attribute
from conrepair.ground.graph.operators import COMMUTATIVE, FUNCTIONS, LINEAR, OPERATORS, SOFTMAX

__all__ = [
    *("BINARY", "COORDINATES", "NEAREST", "RESIZES", "RULES", "UNARY"),
    *("along_last", "backwards", "binary", "cast", "concatenation", "fixed", "gathered"),
    *("local_response", "reduction", "resized", "strided_slice", "where"),
]

UNARY = {**{name: name for name in (*FUNCTIONS, "Elu", "Selu")}, "LogicalNot": "Not"}
"""What operators of one tensor are in the vocabulary; those that a format hasn't included."""

BINARY = {**PAIRS, **{name: name for name in (*LINEAR, "Pow")}, "FloorMod": "Mod"}
RESIZES = {"ResizeBilinear": "linear", "ResizeNearestNeighbor": "nearest"}
RULES = Rules()
"""By TensorFlow's names."""


def fixed(op: str, _: TensorflowView, attributes: Mapping[str, Attribute] | None = None) -> list[LayerPart]:
    """An operator that has no settings, or always the same: the vocabulary's own."""
    return [LayerPart(op, dict(OPERATORS[op].attributes if attributes is None else attributes))]


def binary(op: str, view: TensorflowView) -> list[LayerPart]:
    """An elementwise operator of two."""
    first = view.is_constant(0)
    parameters = {"operand": view.parameter(0 if first else 1)} if first or view.is_constant(1) else {}
    return [LayerPart(op, {"constant_first": first and op not in COMMUTATIVE}, parameters)]


def reduction(op: str, view: TensorflowView) -> list[LayerPart]:
    """Along axes that a constant holds."""
    return [LayerPart(op, {"axes": view.axes(1), "keepdims": bool(view.option("keep_dims"))})]


RULES.named(UNARY, fixed)
RULES.of("Clip", "Relu6")(partial(fixed, attributes={"min": 0.0, "max": 6.0}))
RULES.named(BINARY, binary)
RULES.named(REDUCTIONS, reduction)
RULES.of("Conv", "Conv2D", "Conv3D")(convolution)
RULES.of("MatMul", "BatchMatMul")(partial(matrix_product, left="adj_x", right="adj_y"))


def along_last(op: str, view: TensorflowView) -> list[LayerPart]:
    """An operator along the last axis."""
    return [LayerPart(op, {"axis": view.rank() - 1})]


RULES.named({name: name for name in SOFTMAX}, along_last)


@RULES.of("Cast")
def cast(op: str, view: TensorflowView) -> list[LayerPart]:
    """Numbers in another type."""
    to = view.option("DstT")
    return [LayerPart("Identity")] if to == view.option("SrcT") else [LayerPart(op, {"to": to})]


@RULES.of("LeakyRelu")
def _leaky(op: str, view: TensorflowView) -> list[LayerPart]:
    """A slope below zero."""
    return [LayerPart(op, {"alpha": float(view.option("alpha"))})]


def local_response(op: str, view: TensorflowView) -> list[LayerPart]:
    """The vocabulary's alpha is of the sum over all neighbours, TensorFlow's of each."""
    size = 2 * int(view.option("depth_radius")) + 1
    attributes: dict[str, Attribute] = {name: float(view.option(name)) for name in ("alpha", "beta", "bias")}
    attributes |= {"alpha": float(view.option("alpha")) * size, "size": size}
    return [LayerPart(op, attributes, channels_last=True)]


@RULES.of("Where", "SelectV2")
def where(op: str, view: TensorflowView) -> list[LayerPart]:
    """One of two tensors' numbers each."""
    return [LayerPart(op, {}, view.optional(condition=0, x=1, y=2))]


def _shaped(op: str, view: TensorflowView, *, reads: tuple[int, ...] | None = None) -> list[LayerPart]:
    """The same numbers in another shape, or several times, as arithmetic repeats them."""
    if view.is_constant(0):
        raise ValueError("numbers of their own in a shape that is computed")
    return [LayerPart(op, {"shape": view.result()}, reads=reads)]


RULES.of("Reshape", "Reshape", "Squeeze", "ExpandDims")(_shaped)
RULES.of("Expand", "BroadcastTo")(partial(_shaped, reads=(0,)))


@RULES.of("Transpose")
def _transposed(op: str, view: TensorflowView) -> list[LayerPart]:
    """Axes in another order."""
    order = view.numbers(1)
    return [LayerPart(op, {"perm": tuple(axis % len(order) for axis in order)})]


@RULES.of("ArgMax")
@RULES.of("ArgMin")
def _place(op: str, view: TensorflowView) -> list[LayerPart]:
    """Where the largest or the smallest number is."""
    return [LayerPart(op, {"axis": view.axes(1)[0], "keepdims": False})]


@RULES.of("CumSum", "Cumsum")
def _cumulative_sum(op: str, view: TensorflowView) -> list[LayerPart]:
    """Sums of all numbers up to each one."""
    flags = {name: bool(view.option(name)) for name in ("exclusive", "reverse")}
    return [LayerPart(op, {"axis": view.axes(1)[0], **flags})]


@RULES.of("Pad", "Pad", "PadV2")
def _padded(op: str, view: TensorflowView) -> list[LayerPart]:
    """A frame of one number: zero, or the third operand."""
    value = float(view.parameter(2).numpy().reshape(-1)[0]) if view.has(2) else 0.0
    return [LayerPart(op, {"pads": view.margins(1), "mode": "constant", "value": value}, reads=(0,))]


@RULES.of("Pad", "MirrorPad")
def _mirrored(op: str, view: TensorflowView) -> list[LayerPart]:
    """A frame of the numbers inside."""
    mode = str(view.option("mode")).lower()
    return [LayerPart(op, {"pads": view.margins(1), "mode": mode, "value": 0.0}, reads=(0,))]


def _batches(op: str, view: TensorflowView, *, name: str) -> list[LayerPart]:
    """Blocks of pictures that are pictures of their own: how dilated convolutions are written."""
    return [LayerPart(op, {"block": view.numbers(1), name: view.margins(2)}, reads=(0,))]


RULES.of("BatchToSpace", "BatchToSpaceND")(partial(_batches, name="crops"))
RULES.of("SpaceToBatch", "SpaceToBatchND")(partial(_batches, name="pads"))


def concatenation(op: str, view: TensorflowView, *, count: int, axis: int) -> list[LayerPart]:
    """Pieces behind one another; where a constant one stands, no tensor is read.

    Args:
        op: Of the vocabulary.
        view: The operator.
        count: How many of its operands are pieces.
        axis: Counted from 0.
    """
    constants = [position for position in range(count) if view.is_constant(position)]
    parameters = view.optional(**dict(zip(operand_roles(len(constants)), constants, strict=True)))
    return [LayerPart(op, {"axis": axis}, parameters, reads=tuple(range(count)))]


@RULES.of("Stack", "Pack")
def _stacked(op: str, view: TensorflowView) -> list[LayerPart]:
    """Tensors along a new axis."""
    if any(view.is_constant(position) for position in range(int(view.option("N")))):
        raise ValueError("with constants")
    return [LayerPart(op, {"axis": int(view.option("axis")) % (view.rank() + 1)})]


def _split(op: str, view: TensorflowView, *, axis: int, data: int) -> list[LayerPart]:
    """Pieces of a tensor.

    All of them must be read, else those that aren't would have to be tensors.

    Args:
        op: Of the vocabulary.
        view: The operator.
        axis: The operand that says the axis.
        data: The operand that's split.
    """
    (along,) = view.axes(axis, data)
    pieces = [view.result_sizes(position) for position in range(int(view.option("num_split")))]
    return [LayerPart(op, {"axis": along, "sizes": tuple(piece[along] for piece in pieces)}, reads=(data,))]


RULES.of("Split")(partial(_split, axis=0, data=1))
RULES.of("Split", "SplitV")(partial(_split, axis=2, data=0))


@RULES.of("Slice", "StridedSlice")
def strided_slice(_: str, view: TensorflowView, *, relative: bool = False) -> list[LayerPart]:
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


@RULES.of("Slice")
def _sliced(_: str, view: TensorflowView) -> list[LayerPart]:
    """Begins and sizes."""
    keys = [slice(begin, begin + size) for begin, size in zip(view.numbers(1), view.result_sizes(), strict=True)]
    return slice_parts(view.shape(0), view.result(), keys)


def backwards(_: str, view: TensorflowView) -> list[LayerPart]:
    """Some axes backwards."""
    axes = view.axes(1)
    keys = [slice(None, None, -1 if axis in axes else 1) for axis in range(view.rank())]
    return slice_parts(view.shape(0), view.result(), keys)


def gathered(op: str, view: TensorflowView, axis: int) -> list[LayerPart]:
    """Slices of a table along an axis."""
    return [LayerPart(op, {"axis": axis if axis >= 0 else view.axis(axis)}, view.optional(table=0, indices=1))]


@RULES.of("Tile")
def _tiled(op: str, view: TensorflowView) -> list[LayerPart]:
    """The same numbers several times."""
    return [LayerPart(op, {"repeats": view.numbers(1)}, reads=(0,))]


COORDINATES = {(True, False): "align_corners", (False, True): "half_pixel", (False, False): "asymmetric"}
"""Where numbers are between others, by whether corners are aligned and places are the middles of pixels."""

NEAREST = {places: "floor" if name == "asymmetric" else "round_prefer_ceil" for places, name in COORDINATES.items()}
"""Which of two numbers is the nearest one, by the same."""


def resized(op: str, view: TensorflowView, *, mode: str) -> list[LayerPart]:
    """Pictures of another size."""
    corners, half = bool(view.option("align_corners")), bool(view.option("half_pixel_centers"))
    attributes: dict[str, Attribute] = {
        "mode": mode,
        "coordinate_transformation_mode": COORDINATES[corners, half],
        "nearest_mode": NEAREST[corners, half] if mode == "nearest" else "round_prefer_floor",
        "cubic_coeff_a": -0.5 if half and mode == "cubic" else -0.75,
        "scales": tuple(new / old for new, old in zip(view.result_sizes(), view.sizes(0), strict=True)),
    }
    return [LayerPart(op, attributes, channels_last=True)]


for _name, _mode in RESIZES.items():
    RULES.of("Resize", _name)(partial(resized, mode=_mode))


def _block_mover(op: str, view: TensorflowView, **settings: Attribute) -> list[LayerPart]:
    """Blocks of pictures as channels, or back."""
    attributes = {"blocksize": int(view.option("block_size")), **settings}
    return [LayerPart(op, attributes, channels_last=view.channels_last)]


RULES.of("SpaceToDepth")(_block_mover)
RULES.of("DepthToSpace")(partial(_block_mover, mode="DCR"))

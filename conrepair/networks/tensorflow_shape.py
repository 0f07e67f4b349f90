"""Operators of TensorFlow and TFLite that move numbers around, and reductions."""

from __future__ import annotations

from typing import Any

from conrepair.graph.layer_graph import Attribute
from conrepair.networks.parts import LayerPart, slice_parts
from conrepair.networks.tensorflow_view import Rule, TensorflowView

__all__ = [
    "COORDINATES",
    "NEAREST",
    "batches",
    "block_mover",
    "concatenation",
    "cumulative_sum",
    "expanded",
    "gathered",
    "mirrored",
    "padded",
    "place",
    "reduction",
    "reshaped",
    "resized",
    "reversed_",
    "sliced",
    "split",
    "stacked",
    "strided_slice",
    "tiled",
    "transposed",
]


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


def transposed(view: TensorflowView) -> list[LayerPart]:
    """Axes in another order."""
    order = view.numbers(1)
    return [LayerPart("Transpose", {"perm": tuple(axis % len(order) for axis in order)})]


def reduction(op: str) -> Rule:
    """Along axes that a constant holds."""
    return lambda view: [LayerPart(op, {"axes": view.axes(1), "keepdims": bool(view.option("keep_dims"))})]


def place(op: str) -> Rule:
    """Where the largest or the smallest number is."""
    return lambda view: [LayerPart(op, {"axis": view.axes(1)[0], "keepdims": False})]


def cumulative_sum(view: TensorflowView) -> list[LayerPart]:
    """Sums of all numbers up to each one."""
    backwards = {name: bool(view.option(name)) for name in ("exclusive", "reverse")}
    return [LayerPart("CumSum", {"axis": view.axes(1)[0], **backwards})]


def padded(view: TensorflowView) -> list[LayerPart]:
    """A frame of one number: zero, or the third operand."""
    value = float(view.parameter(2).numpy().reshape(-1)[0]) if view.has(2) else 0.0
    return [LayerPart("Pad", {"pads": view.margins(1), "mode": "constant", "value": value}, reads=(0,))]


def mirrored(view: TensorflowView) -> list[LayerPart]:
    """A frame of the numbers inside."""
    mode = str(view.option("mode")).lower()
    return [LayerPart("Pad", {"pads": view.margins(1), "mode": mode, "value": 0.0}, reads=(0,))]


def batches(op: str, name: str) -> Rule:
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


def stacked(view: TensorflowView) -> list[LayerPart]:
    """Tensors along a new axis."""
    if any(view.is_constant(position) for position in range(int(view.option("N")))):
        raise ValueError("with constants")
    return [LayerPart("Stack", {"axis": int(view.option("axis")) % (view.rank() + 1)})]


def split(axis: int, data: int) -> Rule:
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


def sliced(view: TensorflowView) -> list[LayerPart]:
    """Begins and sizes."""
    keys = [slice(begin, begin + size) for begin, size in zip(view.numbers(1), view.result_sizes(), strict=True)]
    return slice_parts(view.shape(0), view.result(), keys)


def reversed_(view: TensorflowView) -> list[LayerPart]:
    """Some axes backwards."""
    axes = view.axes(1)
    keys = [slice(None, None, -1 if axis in axes else 1) for axis in range(view.rank())]
    return slice_parts(view.shape(0), view.result(), keys)


def gathered(view: TensorflowView, axis: int) -> list[LayerPart]:
    """Slices of a table along an axis."""
    return [LayerPart("Gather", {"axis": axis if axis >= 0 else view.axis(axis)}, view.optional(table=0, indices=1))]


def tiled(view: TensorflowView) -> list[LayerPart]:
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


def block_mover(op: str, **settings: Attribute) -> Rule:
    """Blocks of pictures as channels, or back."""
    return lambda view: [
        LayerPart(op, {"blocksize": int(view.option("block_size")), **settings}, channels_last=view.channels_last)
    ]

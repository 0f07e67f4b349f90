"""Write the padding that `auto_pad`, or the `output_shape` of a transposed convolution, asks for as numbers."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir

from conrepair.ground.onnx_graphs.defaults import attribute
from conrepair.ground.onnx_graphs.infer_shapes import static_shape

WINDOWED = {"AveragePool", "Conv", "LpPool", "MaxPool"}


def explicit_pads(model: onnx_ir.Model) -> None:
    """Replace it in place where the padding is known; it isn't where it depends on a symbolic size."""
    for node in model.graph.all_nodes():
        if node.op_type == "ConvTranspose" and not node.domain and "output_shape" in node.attributes:
            _from_output_shape(node)
        mode = attribute(node, "auto_pad", "NOTSET") if node.op_type in WINDOWED and not node.domain else "NOTSET"
        pads = None if mode == "NOTSET" else _pads(node, mode)
        if pads is not None:
            node.attributes["pads"] = onnx_ir.AttrInt64s("pads", pads)
            del node.attributes["auto_pad"]


def _pads(node: onnx_ir.Node, mode: str) -> list[int] | None:
    kernel = _kernel(node)
    source = node.inputs[0]
    if kernel is None or source is None or source.shape is None:
        return None
    rank = len(kernel)
    if mode == "VALID":
        return [0] * 2 * rank
    strides, dilations = _numbers(node, "strides", rank), _numbers(node, "dilations", rank)
    totals = [
        same_padding(length if isinstance(length, int) else None, (size - 1) * dilation + 1, stride)
        for length, size, stride, dilation in zip(source.shape[2:], kernel, strides, dilations, strict=True)
    ]
    known = [total for total in totals if total is not None]
    return shared_padding(known, mode) if len(known) == rank else None


def same_padding(size: int | None, extent: int, stride: int) -> int | None:
    """How many cells SAME puts around an axis; None where that depends on a size that isn't known.

    Args:
        size: Of the axis; None where it isn't known.
        extent: Cells from the window's first tap to its last.
        stride: Cells from one position of the window to the next.
    """
    if size is None:
        return extent - 1 if stride == 1 else None
    return max((-(-size // stride) - 1) * stride + extent - size, 0)


def shared_padding(totals: Sequence[int], mode: str) -> list[int]:
    """Both ends of each axis get half of its padding; of an odd one more at the end that the mode names.

    Args:
        totals: Of each axis.
        mode: SAME_UPPER; else the begin gets more.
    """
    smaller, larger = [total // 2 for total in totals], [total - total // 2 for total in totals]
    return [*smaller, *larger] if mode == "SAME_UPPER" else [*larger, *smaller]


def _from_output_shape(node: onnx_ir.Node) -> None:
    kernel, source = _kernel(node), node.inputs[0]
    if kernel is None or source is None or source.shape is None:
        return
    rank, lengths = len(kernel), [length for length in source.shape[2:] if isinstance(length, int)]
    wanted = list(node.attributes["output_shape"].as_ints())[-rank:]
    if len(lengths) < rank:
        return
    strides, dilations = _numbers(node, "strides", rank), _numbers(node, "dilations", rank)
    extra = _numbers(node, "output_padding", rank, usual=0)
    totals = [
        strides[axis] * (lengths[axis] - 1) + extra[axis] + (kernel[axis] - 1) * dilations[axis] + 1 - wanted[axis]
        for axis in range(rank)
    ]
    if min(totals) < 0:
        return
    node.attributes["pads"] = onnx_ir.AttrInt64s(
        "pads", shared_padding(totals, attribute(node, "auto_pad", "NOTSET"))
    )
    for name in ("auto_pad", "output_shape"):
        node.attributes.pop(name, None)


def _kernel(node: onnx_ir.Node) -> list[int] | None:
    if "kernel_shape" in node.attributes:
        return list(attribute(node, "kernel_shape"))
    weight = node.inputs[1] if len(node.inputs) > 1 else None  # pools have none
    shape = None if weight is None else weight.shape or static_shape(weight)
    sizes = [size for size in shape[2:] if isinstance(size, int)] if shape else []  # its channels may be open
    return sizes if shape and len(sizes) == len(shape) - 2 else None


def _numbers(node: onnx_ir.Node, name: str, rank: int, usual: int = 1) -> list[int]:
    return list(attribute(node, name, [usual] * rank))

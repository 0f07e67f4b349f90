"""BatchNormalization for the product with, and the sum of, one constant for each channel."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir

from conrepair.onnx_passes.infer_shapes import rank_of
from conrepair.onnx_passes.initializers import constant_of
from conrepair.onnx_passes.rewrites.building import Builder, main_nodes, only_use

__all__ = ["affine"]

_OPERATORS = ("Mul", "Add", "Sub", "Div")


def affine(model: onnx_ir.Model) -> None:
    """Replace in place; a product and the sum behind it become one node."""
    for node in main_nodes(model, *_OPERATORS):
        if node.graph is None:
            continue  # joined with the one before
        found = _operand(node)
        if found is None:
            continue
        value, scale, shift = found
        last, joined = node, []
        behind = only_use(node.outputs[0])
        more = None if behind is None or behind.graph is not node.graph else _operand(behind)
        if behind is not None and more is not None and more[0] is node.outputs[0]:
            scale, shift = scale * more[1], shift * more[1] + more[2]
            last, joined = behind, [node]
        channels = max(scale.size, shift.size)
        build = Builder(last)
        parts = [
            build.constant(np.broadcast_to(part, (channels,)), scale.dtype)
            for part in (scale, shift, np.zeros(1), np.ones(1))
        ]
        build.finish(build.op("BatchNormalization", [value, *parts], epsilon=0.0), *joined)


def _operand(node: onnx_ir.Node) -> tuple[onnx_ir.Value, npt.NDArray[Any], npt.NDArray[Any]] | None:
    """What a node scales and shifts by constants of its channels."""
    if node.op_type not in _OPERATORS or node.domain or len(node.inputs) != 2:
        return None
    arrays = [constant_of(value) for value in node.inputs]
    place = next((place for place, array in enumerate(arrays) if array is not None), None)
    if place is None or arrays[1 - place] is not None or (place == 0 and node.op_type in {"Sub", "Div"}):
        return None
    value, array = node.inputs[1 - place], arrays[place]
    rank = rank_of(value)
    if value is None or array is None or array.dtype.kind != "f" or rank is None or rank < 3:
        return None
    if not isinstance(value.shape[1] if value.shape else None, int):
        return None
    channels = int(value.shape[1])  # type: ignore[index,arg-type]
    full = (1,) * (rank - array.ndim) + array.shape
    if len(full) != rank or array.size not in {1, channels} or (array.size > 1 and full[1] != channels):
        return None
    numbers = np.broadcast_to(array.reshape(-1), (channels,))
    one, zero = np.ones_like(numbers), np.zeros_like(numbers)
    match node.op_type:
        case "Mul":
            return value, numbers, zero
        case "Div":
            return value, one / numbers, zero
        case "Add":
            return value, one, numbers
        case _:
            return value, one, -numbers

"""The constants that ONNX's nodes read: given to one node as its own, in the file's layout and type."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir

from conrepair.formats.editing.editor import NotEditableError
from conrepair.formats.editing.grid import limits_of
from conrepair.formats.onnx.edit.file import OnnxFile, tensor_of
from conrepair.formats.onnx.load.quantization import MOVING
from conrepair.ground.graph.channels import per_channel
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.graph.operators import RECURRENT_ACTIVATIONS
from conrepair.ground.onnx_graphs.defaults import attribute
from conrepair.ground.onnx_graphs.initializers import constant_of

_PER_CHANNEL = 21  # opset in which GroupNormalization's scale got an entry for each channel
_STATES = (5, 6)  # inputs of recurrent operators
_HALF = 0.5 + 1e-3  # of a step: what rounding puts over the edge of a quantized type is no overflow


def to_file(file: OnnxFile, node: onnx_ir.Node, index: int, array: Array) -> Array:
    """An array in the vocabulary's convention as the file has it at an input of a node, whose attributes say how.

    Raises:
        NotEditableError: if no numbers in the file mean these.
    """
    if node.op_type == "Gemm" and not node.domain:
        return _of_gemm(node, index, array)
    if node.op_type == "GroupNormalization" and file.opset(node) < _PER_CHANNEL:
        return _per_group(node, array)
    if node.op_type in RECURRENT_ACTIVATIONS and index in _STATES and attribute(node, "layout", 0):
        return array.swapaxes(0, 1)
    return array


def set_constant(file: OnnxFile, node: onnx_ir.Node, index: int, array: Array) -> None:
    """Give one node other numbers at an input, in place; whoever shares the old ones keeps them.

    Args:
        file: Of the node.
        node: Reads the constant.
        index: Of the input.
        array: As the node reads it; where that is dequantized, it's quantized with the same scales.

    Raises:
        NotEditableError: if the numbers don't fit into the type.
    """
    chain = _dequantizing(node.inputs[index])
    if not chain:
        set_plain(file, node, index, array)
        return
    for item in reversed(chain[1:]):
        array = moved_back(file, item, array)
    stored = _quantized(file, chain[0], array)
    set_plain(file, constant_chain(file, node, index)[0], 0, stored)


def whole_steps(steps: Array, dtype: onnx_ir.DataType, label: str) -> Array:
    """Round to the integers of a type.

    Args:
        steps: Numbers by their scale, and their zero point.
        dtype: Of the integers.
        label: Who has the scales, for the message.

    Raises:
        NotEditableError: if they are more than rounding beyond what the type holds.
    """
    low, high = limits_of(dtype.numpy())
    if steps.size and (steps.min() < low - _HALF or steps.max() > high + _HALF):
        raise NotEditableError(
            f"the numbers don't fit into {dtype.name.lower()} with the scales of {label} (they'd be from "
            f"{steps.min():.0f} to {steps.max():.0f}, the type is from {low} to {high}). Change its scales first."
        )
    return np.clip(np.rint(steps), low, high)


def constant_chain(file: OnnxFile, node: onnx_ir.Node, index: int) -> list[onnx_ir.Node]:
    """What dequantizes a constant for one input of a node, and for nobody else: copied where others read it.

    Args:
        file: Of the node.
        node: Reads the constant.
        index: Of the input.

    Returns:
        DequantizeLinear, and what moves elements behind it; none where the input isn't dequantized.
    """
    if index >= len(node.inputs):
        return []
    chain = _dequantizing(node.inputs[index])
    if any(len(item.outputs[0].uses()) > 1 or item.outputs[0].is_graph_output() for item in chain):
        return _copied(file, chain, node, index)
    return chain


def set_plain(file: OnnxFile, node: onnx_ir.Node, index: int, array: Array) -> None:
    """Give one node other numbers at an input, as they're stored, in place; whoever shares the old ones keeps them.

    Raises:
        NotEditableError: if the input's type isn't known.
    """
    value = node.inputs[index]
    dtype = file.dtype(value)
    if value is None or dtype is None:
        raise NotEditableError(f"input {index} of {node.name} is of no known type; nothing can be stored there.")
    producer = value.producer()
    alone = len(value.uses()) == 1 and not value.is_graph_output()
    if alone and value.is_initializer():
        value.const_value = tensor_of(array, dtype, value.name)
        value.shape = value.const_value.shape
    elif alone and producer is not None and producer.op_type == "Constant" and not producer.domain:
        producer.attributes.clear()
        producer.attributes["value"] = onnx_ir.AttrTensor("value", tensor_of(array, dtype, value.name))
    else:
        node.replace_input_with(index, file.constant(f"{value.name}/{node.name or node.op_type}", array, dtype))
        file.forget(value)


# --- layouts ------------------------------------------------------------------------------------------------------


def _of_gemm(node: onnx_ir.Node, index: int, array: Array) -> Array:
    """Divide by the factor that the product is multiplied by, and turn back."""
    scaled_first = index == 1 and constant_of(node.inputs[0]) is not None  # one of two is
    names = {0: "alpha", 1: "alpha", 2: "beta"}
    factor = 1.0 if scaled_first else attribute(node, names[index], 1.0)
    if factor == 0:
        raise NotEditableError(f"{node.name} multiplies input {index} by 0: no numbers there change anything.")
    scaled = array if factor == 1.0 else (array / factor).astype(array.dtype)
    return scaled.T if index < 2 and attribute(node, ("transA", "transB")[index], 0) else scaled


def _per_group(node: onnx_ir.Node, array: Array) -> Array:
    table = array.reshape(int(attribute(node, "num_groups", 1)), -1)
    if np.any(table != table[:, :1]):
        raise NotEditableError(f"{node.name} has one number for each group in this opset, not one for each channel.")
    return table[:, 0]


# --- quantization -------------------------------------------------------------------------------------------------


def _dequantizing(value: onnx_ir.Value | None) -> list[onnx_ir.Node]:
    """What lies between the stored numbers and a value: DequantizeLinear, and what moves elements behind it."""
    chain: list[onnx_ir.Node] = []
    while value is not None and (node := value.producer()) is not None and not node.domain:
        if node.op_type not in {*MOVING, "DequantizeLinear"}:
            break
        chain.append(node)
        if node.op_type == "DequantizeLinear":
            return chain[::-1]
        value = node.inputs[0]
    return []


def moved_back(file: OnnxFile, node: onnx_ir.Node, array: Array) -> Array:
    """An array in front of a node that only moves elements.

    Raises:
        NotEditableError: if the shape there isn't known.
    """
    if node.op_type == "Identity":
        return array
    if node.op_type == "Transpose":
        perm = attribute(node, "perm", tuple(reversed(range(array.ndim))))
        return array.transpose(np.argsort(perm))
    shape = None if node.inputs[0] is None else file.shape(node.inputs[0])
    if shape is None:
        raise NotEditableError(f"{node.name} reshapes quantized numbers of an unknown shape; they can't be replaced.")
    return array.reshape(shape)


def _quantized(file: OnnxFile, node: onnx_ir.Node, array: Array) -> Array:
    """The integers that a DequantizeLinear reads for real numbers."""
    dtype = file.dtype(node.inputs[0])
    scale = constant_of(node.inputs[1])
    zero = constant_of(node.inputs[2]) if len(node.inputs) > 2 else np.zeros((), np.int32)
    if dtype is None or scale is None or zero is None or not dtype.is_integer():
        raise NotEditableError(f"{node.name} has no constant scale of integers: no numbers can be quantized for it.")
    axis = int(attribute(node, "axis", 1))
    scale, zero = (_spread(item, axis, array, int(attribute(node, "block_size", 0))) for item in (scale, zero))
    steps = array.astype(np.float64) / scale.astype(np.float64) + zero.astype(np.float64)
    return whole_steps(steps, dtype, node.name or str(node.outputs[0].name))


def _spread(numbers: Array, axis: int, array: Array, block: int) -> Array:
    """Scales as they are broadcast with the numbers: one, one per channel, or one per block."""
    if block and numbers.size != 1:
        return np.repeat(numbers, block, axis).take(range(array.shape[axis]), axis)
    return per_channel(numbers, axis, array.ndim)


def _copied(file: OnnxFile, chain: Sequence[onnx_ir.Node], reader: onnx_ir.Node, index: int) -> list[onnx_ir.Node]:
    """The same chain once more, for one input of one reader."""
    label = reader.name or reader.op_type
    copies: list[onnx_ir.Node] = []
    for item in chain:
        result = item.outputs[0]
        first = copies[-1].outputs[0] if copies else item.inputs[0]
        copy = onnx_ir.Node(
            item.domain,
            item.op_type,
            [first, *item.inputs[1:]],
            dict(item.attributes),
            name=file.free(f"{item.name or item.op_type}/{label}"),
        )
        copy.outputs[0].name = file.free(f"{result.name}/{label}")
        shape = file.shape(result)
        copy.outputs[0].type = result.type
        copy.outputs[0].shape = None if shape is None else onnx_ir.Shape(shape)
        copies.append(copy)
    old = reader.inputs[index]
    file.graph.insert_before(reader, copies)
    reader.replace_input_with(index, copies[-1].outputs[0])
    file.forget(old)
    return copies

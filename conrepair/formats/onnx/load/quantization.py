"""The real numbers that integer inputs and outputs of an ONNX graph stand for."""

from __future__ import annotations

import onnx
from onnx import numpy_helper

from conrepair.ground.data.tensor_spec import Quantization

MOVING = {"Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}


def io_quantization(proto: onnx.ModelProto) -> dict[str, Quantization]:
    """Scales and zero points of inputs that are dequantized first and outputs that are quantized last.

    ONNX keeps them as constants of DequantizeLinear and QuantizeLinear nodes, not with the tensors. Nodes that only
    move numbers may stand between (tf2onnx transposes images before it dequantizes them).

    Args:
        proto: A model; external data need not be loaded.

    Returns:
        By name of the input or output; tensors quantized by channel are left out.
    """
    constants = {tensor.name: tensor for tensor in proto.graph.initializer}
    for node in proto.graph.node:
        if node.op_type == "Constant":
            constants.update((node.output[0], item.t) for item in node.attribute if item.name == "value")
    inputs = {value.name for value in proto.graph.input} - set(constants)
    outputs = {value.name for value in proto.graph.output}
    entering, leaving = {name: name for name in inputs}, {name: name for name in outputs}
    moving = [node for node in proto.graph.node if node.op_type in MOVING]
    for node in moving:
        if node.input[0] in entering:
            entering[node.output[0]] = entering[node.input[0]]
    for node in reversed(moving):
        if node.output[0] in leaving:
            leaving[node.input[0]] = leaving[node.output[0]]
    found = {}
    for node in proto.graph.node:
        name = None
        if node.op_type == "DequantizeLinear":
            name = entering.get(node.input[0])
        elif node.op_type == "QuantizeLinear":
            name = leaving.get(node.output[0])
        parameters = None if name is None else _parameters(node, constants)
        if name is not None and parameters is not None:
            found[name] = parameters
    return found


def _parameters(node: onnx.NodeProto, constants: dict[str, onnx.TensorProto]) -> Quantization | None:
    tensors = [constants.get(name) for name in node.input[1:3]]
    if not tensors or any(tensor is None or tensor.external_data for tensor in tensors):
        return None
    values = [numpy_helper.to_array(tensor).reshape(-1) for tensor in tensors]
    if any(len(value) != 1 for value in values):
        return None
    zero_point = int(values[1][0]) if len(values) > 1 else 0
    return Quantization(float(values[0][0]), zero_point)

"""The real numbers that integer inputs and outputs of an ONNX graph stand for."""

from __future__ import annotations

import onnx
from onnx import numpy_helper

from conrepair.data.tensor_spec import Quantization

__all__ = ["io_quantization"]


def io_quantization(proto: onnx.ModelProto) -> dict[str, Quantization]:
    """Scales and zero points of inputs that are dequantized first and outputs that are quantized last.

    ONNX keeps them as constants of DequantizeLinear and QuantizeLinear nodes, not with the tensors.

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
    found = {}
    for node in proto.graph.node:
        stored = {"DequantizeLinear": node.input[:1], "QuantizeLinear": node.output[:1]}.get(node.op_type, [])
        for name in stored:
            if name in (inputs if node.op_type == "DequantizeLinear" else outputs):
                parameters = _parameters(node, constants)
                if parameters is not None:
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

"""TFLite's GELU, which tf2onnx doesn't know: TensorFlow's converter makes it of every GELU that it recognises."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir

from conrepair.onnx_passes.initializers import new_initializer

__all__ = ["write_out_gelu"]


def write_out_gelu(graph: onnx_ir.Graph) -> None:
    """Replace each TFL_GELU by operators of ONNX, in place; TFLite's kernel computes in float32."""
    for node in list(graph):
        if node.op_type == "TFL_GELU":
            approximate = "approximate" in node.attributes and node.attributes["approximate"].as_int()
            _replace(node, graph, tanh=bool(approximate))


def _replace(node: onnx_ir.Node, graph: onnx_ir.Graph, *, tanh: bool) -> None:
    """0.5 x (1 + erf(x / sqrt(2))), or 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))."""
    x, result = node.inputs[0], node.outputs[0]
    nodes: list[onnx_ir.Node] = []

    def call(operator: str, *operands: onnx_ir.Value | float | None) -> onnx_ir.Value:
        values = [
            new_initializer(graph, f"{result.name}/gelu/{len(nodes)}/constant", np.array(operand, np.float32))
            if isinstance(operand, float)
            else operand
            for operand in operands
        ]
        nodes.append(onnx_ir.node(operator, values, name=f"{node.name}/gelu/{len(nodes)}"))
        nodes[-1].outputs[0].name = f"{result.name}/gelu/{len(nodes)}"
        return nodes[-1].outputs[0]

    if tanh:
        cube = call("Mul", call("Mul", call("Mul", x, x), x), 0.044715)
        inner = call("Tanh", call("Mul", call("Add", x, cube), math.sqrt(2 / math.pi)))
    else:
        inner = call("Erf", call("Mul", x, math.sqrt(0.5)))
    written = call("Mul", call("Mul", x, 0.5), call("Add", inner, 1.0))
    name = result.name
    onnx_ir.convenience.replace_all_uses_with([result], [written], replace_graph_outputs=True)
    result.name, written.name = f"{name}/before", name
    written.type, written.shape = result.type, result.shape
    graph.insert_before(node, nodes)
    graph.remove(node, safe=True)

"""Give every output of a graph a node of its own."""

from __future__ import annotations

import onnx_ir

__all__ = ["separate_outputs"]


def separate_outputs(model: onnx_ir.Model) -> None:
    """Put an Identity in place before outputs that are inputs, constants, repeated, or one of a node's several.

    The outputs keep their names.
    """
    graph = model.graph
    seen: set[int] = set()
    for position, value in enumerate(graph.outputs):
        node = value.producer()
        if value.type is not None and not isinstance(value.type, onnx_ir.TensorType):
            continue  # sequences: Identity takes them from opset 14 on
        alone = node is not None and len(node.outputs) == 1 and not value.uses()
        if alone and id(value) not in seen:
            seen.add(id(value))
            continue
        identity = onnx_ir.node("Identity", [value], name=f"output {position}")
        result = identity.outputs[0]
        result.type, result.shape = value.type, value.shape
        name = value.name
        if id(value) in seen or value.is_graph_input():
            result.name = f"{name}/output {position}"
        else:
            result.name, value.name = name, f"{name}/inner"
        seen.add(id(value))
        graph.append(identity)
        graph.outputs[position] = result

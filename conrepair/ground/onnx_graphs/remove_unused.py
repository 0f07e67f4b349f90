"""Take out what no output depends on."""

from __future__ import annotations

import onnx_ir
from onnx_ir.passes.common import RemoveUnusedFunctionsPass, RemoveUnusedNodesPass, RemoveUnusedOpsetsPass

# Take Identity nodes out.


def remove_identities(model: onnx_ir.Model) -> None:
    """Remove in place those that aren't needed, in subgraphs too.

    Needed are those that make an output of something else than one node's result: of an input, a constant, a
    value of an outer graph, or another output. (onnx_ir's pass makes two outputs of a Scan's body one.)
    """
    for node in list(model.graph.all_nodes()):
        source = node.inputs[0] if node.op_type == "Identity" and node.domain in {"", "ai.onnx"} else None
        if source is None or node.graph is None:
            continue
        result = node.outputs[0]
        is_output = result.is_graph_output()
        if is_output and not _can_be_output(source, node):
            continue
        onnx_ir.convenience.replace_all_uses_with([result], [source], replace_graph_outputs=True)
        node.graph.remove(node, safe=True)
        if is_output:
            source.name, result.name = result.name, None
        source.type = source.type or result.type
        source.shape = source.shape if source.shape is not None else result.shape


def _can_be_output(value: onnx_ir.Value, identity: onnx_ir.Node) -> bool:
    producer = value.producer()
    return producer is not None and producer.graph is identity.graph and not value.is_graph_output()


def remove_unused(model: onnx_ir.Model) -> None:
    """Remove unused nodes, initializers, functions and opset imports in place; inputs stay."""
    RemoveUnusedNodesPass()(model)
    RemoveUnusedFunctionsPass()(model)  # type: ignore[no-untyped-call]
    RemoveUnusedOpsetsPass()(model)

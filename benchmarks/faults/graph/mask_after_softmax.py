"""The mask of an attention is added to its weights, behind the softmax."""

from __future__ import annotations

import numpy as np
import onnx_ir

from benchmarks.faults.attention import masked_sums, scores_at
from benchmarks.faults.fault import Change, Fault
from conrepair.graph.kinds import Kind

__all__ = ["FAULT"]


def _softmax(node: onnx_ir.Node) -> onnx_ir.Node:
    return next(iter(node.outputs[0].uses())).node


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    scores = scores_at(node)
    softmax = _softmax(node)
    readers = list(softmax.outputs[0].uses())
    softmax.replace_input_with(0, node.inputs[scores])
    node.replace_input_with(scores, softmax.outputs[0])
    for use in readers:
        use.node.replace_input_with(use.idx, node.outputs[0])
    graph = node.graph
    if not isinstance(graph, onnx_ir.Graph):
        raise ValueError(f"{node.name} belongs to no graph")
    graph.remove(node)
    graph.insert_after(softmax, node)
    return Change((node, softmax), f"{node.name} adds the mask behind {softmax.name}")


FAULT = Fault(
    name="mask-after-softmax",
    kind=Kind.GRAPH,
    provenance="DeBERTa#6",
    repair="the order of both",
    places=lambda graph: [node for node in masked_sums(graph) if not _softmax(node).outputs[0].is_graph_output()],
    change=_change,
)

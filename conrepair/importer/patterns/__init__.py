"""Find in a graph what exporters wrote out: LayerNormalization, GELU, multi-head attention.

A part of the graph that looks like one of them is run on random arrays (of several sizes, where sizes are open) and
compared with what it should compute; only then one node takes its place. So no attribute, constant, reshape or order
of axes has to be recognised one by one, and what differs in any of them stays as it is.
"""

from __future__ import annotations

import onnx_ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from conrepair.importer.patterns.attention import join_attention
from conrepair.importer.patterns.gelu import join_gelu
from conrepair.importer.patterns.layer_normalization import join_layer_normalization
from conrepair.importer.patterns.rewriting import compute_constants

__all__ = ["join_patterns"]


def join_patterns(model: onnx_ir.Model) -> None:
    """Replace what exporters wrote out by single nodes, where that's the same."""
    kinds = {node.op_type for node in model.graph}
    before = len(model.graph)
    opsets = dict(model.opset_imports)
    compute_constants(model.graph, opsets)
    for node in list(model.graph):
        if node.graph is not model.graph or node.domain not in {"", "ai.onnx"}:
            continue
        if node.op_type == "ReduceMean" and kinds & {"Sqrt", "Pow"}:
            join_layer_normalization(node, opsets)
        elif node.op_type in {"Erf", "Tanh"}:
            join_gelu(node, opsets)
        elif node.op_type == "Softmax":
            join_attention(node, opsets)
    if len(model.graph) != before or "MultiHeadAttention" in {node.op_type for node in model.graph} - kinds:
        RemoveUnusedNodesPass()(model)

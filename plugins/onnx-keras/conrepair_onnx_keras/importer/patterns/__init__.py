"""Find in a graph what exporters wrote out: LayerNormalization, GELU, multi-head attention.

LayerNormalization and GELU are found by their equations, as products in any order. What looks like an attention is
run on random arrays (of several sizes, where sizes are open) and compared with what it should compute; only then one
node takes its place. So no reshape or order of axes has to be recognised one by one, and what differs in any of them
stays as it is.
"""

from __future__ import annotations

import onnx_ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from conrepair_onnx_keras.importer.patterns.attention import join_attention
from conrepair_onnx_keras.importer.patterns.rewriting import compute_constants, join_equations


def join_patterns(model: onnx_ir.Model) -> None:
    """Replace what exporters wrote out by single nodes, where that's the same."""
    kinds = {node.op_type for node in model.graph}
    before = len(model.graph)
    opsets = dict(model.opset_imports)
    compute_constants(model.graph, opsets)
    join_equations(model)
    for node in list(model.graph):
        if node.op_type == "Softmax" and node.graph is model.graph and node.domain in {"", "ai.onnx"}:
            join_attention(node, opsets)
    if len(model.graph) != before or "MultiHeadAttention" in {node.op_type for node in model.graph} - kinds:
        RemoveUnusedNodesPass()(model)

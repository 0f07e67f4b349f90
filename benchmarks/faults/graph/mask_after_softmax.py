"""The mask of an attention is added to its weights, behind the softmax."""

from __future__ import annotations

import numpy as np

from benchmarks.faults.attention import scores_of, sums_of
from benchmarks.faults.fault import Fault
from benchmarks.faults.native import on_nodes
from conrepair.formats.editing.editor import Editor
from conrepair.formats.editing.operation import operation_of
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Node

__all__ = ["FAULT"]


def _change(editor: Editor, node: Node, _: np.random.Generator) -> str:
    scores = node.inputs[scores_of(editor.graph, node)]
    (softmax,) = editor.graph.consumers[node.outputs[0]]
    steps = operation_of(softmax, lambda _: scores), operation_of(node, lambda name: 0 if name == scores else name)
    editor.graft(softmax.outputs[0], steps, "mask")
    return f"{node.layer} adds the mask behind {softmax.layer}"


FAULT = Fault(
    name="mask-after-softmax",
    kind=Kind.GRAPH,
    provenance="DeBERTa#6",
    repair="the order of both",
    native=on_nodes(sums_of, _change),
)

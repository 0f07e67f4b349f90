"""The mask of an attention is not applied."""

from __future__ import annotations

import numpy as np

from benchmarks.faults.attention import scores_of, sums_of
from benchmarks.faults.fault import Fault
from benchmarks.faults.native import on_nodes
from conrepair.formats.editing.editor import Editor
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Node

__all__ = ["FAULT"]


def _change(editor: Editor, node: Node, _: np.random.Generator) -> str:
    editor.remove(node, scores_of(editor.graph, node))
    return f"the mask that {node.layer} adds is lost"


FAULT = Fault(
    name="mask-lost",
    kind=Kind.GRAPH,
    provenance="DeBERTa#6, Chinese-CLIP#66",
    repair="the sum with the mask",
    native=on_nodes(sums_of, _change),
)

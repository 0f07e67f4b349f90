"""The mask of an attention is not applied."""

from __future__ import annotations

import numpy as np
import onnx_ir

from benchmarks.faults.attention import masked_sums, scores_at
from benchmarks.faults.edits import bypass
from benchmarks.faults.fault import Change, Fault
from conrepair.graph.kinds import Kind

__all__ = ["FAULT"]


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    name = node.name
    return Change(bypass(node, scores_at(node)), f"the mask that {name} adds is lost")


FAULT = Fault(
    name="mask-lost",
    kind=Kind.GRAPH,
    provenance="DeBERTa#6, Chinese-CLIP#66",
    repair="the sum with the mask",
    places=masked_sums,
    change=_change,
)

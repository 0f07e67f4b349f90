"""A factor of Gemm is ignored, or not there."""

from __future__ import annotations

import numpy as np
import onnx_ir

from benchmarks.faults.fault import Change, Fault
from benchmarks.faults.places import operators
from conrepair.graph.kinds import Kind

__all__ = ["FAULT"]


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    before = node.attributes["alpha"].as_float() if "alpha" in node.attributes else 1.0
    after = 0.5 if before == 1 else 1.0
    node.attributes["alpha"] = onnx_ir.AttrFloat32("alpha", after)
    return Change((node,), f"{node.name}: alpha is {after:g} instead of {before:g}")


FAULT = Fault(
    name="alpha-ignored",
    kind=Kind.HYPERPARAMETERS,
    provenance="docs/measured/converter-faults.md (onnx2keras)",
    repair="alpha",
    places=operators("Gemm"),
    change=_change,
)

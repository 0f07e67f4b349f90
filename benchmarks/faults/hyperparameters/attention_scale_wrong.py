"""The scores of an attention are scaled by something else than one over the root of a head's size."""

from __future__ import annotations

import numpy as np
import onnx_ir

from benchmarks.faults.attention import scales
from benchmarks.faults.edits import numbers_of, set_constant
from benchmarks.faults.fault import Change, Fault
from conrepair.graph.kinds import Kind

__all__ = ["FAULT"]


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    number = numbers_of(node, 1)
    power = int(generator.choice([0, 2]))
    set_constant(node, 1, (number**power).astype(number.dtype))
    return Change((node,), f"{node.name} has {float(number.reshape(-1)[0]) ** power:g} for its scale")


FAULT = Fault(
    name="attention-scale-wrong",
    kind=Kind.HYPERPARAMETERS,
    provenance="mlc-llm#3426, Megatron-LM#848",
    repair="the scale",
    places=scales,
    change=_change,
)

"""The scores of an attention are scaled by something else than one over the root of a head's size."""

from __future__ import annotations

import numpy as np

from benchmarks.faults.attention import scales_of
from benchmarks.faults.fault import Fault
from benchmarks.faults.native import numbers, on_nodes
from conrepair.formats.editing.editor import Editor
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Node

__all__ = ["FAULT"]


def _change(editor: Editor, node: Node, generator: np.random.Generator) -> str:
    number, power = numbers(node, "operand"), int(generator.choice([0, 2]))
    editor.set_parameter(node, "operand", (number**power).astype(number.dtype))
    return f"{node.layer} has {float(number.reshape(-1)[0]) ** power:g} for its scale"


FAULT = Fault(
    name="attention-scale-wrong",
    kind=Kind.HYPERPARAMETERS,
    provenance="mlc-llm#3426, Megatron-LM#848",
    repair="the scale",
    native=on_nodes(scales_of, _change),
)

"""The gates of a recurrent layer are in another library's order."""

from __future__ import annotations

import numpy as np

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import nodes_of, numbers, on_nodes
from conrepair.formats.editing.editor import Editor
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Array, Node

__all__ = ["FAULT"]

_GATES = {"GRU": 3, "LSTM": 4}


def _exchanged(array: Array, count: int) -> Array:
    gates = np.split(array, count, axis=1)
    return np.concatenate([gates[1], gates[0], *gates[2:]], axis=1)


def _change(editor: Editor, node: Node, _: np.random.Generator) -> str:
    for role in ("W", "R"):
        if role in node.parameters:
            editor.set_parameter(node, role, _exchanged(numbers(node, role), _GATES[node.op]))
    return f"the first two gates of {node.layer} are exchanged"


FAULT = Fault(
    name="gates-permuted",
    kind=Kind.PARAMETERS,
    provenance="keras-onnx#89, ngraph#3733, onnx-tensorflow#227",
    repair="the order of the gates",
    native=on_nodes(nodes_of(*_GATES, condition=lambda _, node: "W" in node.parameters), _change),
)

"""An activation is applied once by the layer and once more behind it."""

from __future__ import annotations

import numpy as np

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import nodes_of, on_nodes
from benchmarks.faults.steps import insert
from conrepair.formats.editing.editor import Editor
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Node

__all__ = ["FAULT"]

_OPERATORS = ("HardSwish", "Sigmoid", "Tanh", "Elu", "Selu", "Softplus", "Mish", "Gelu", "Softmax")


def _change(editor: Editor, node: Node, _: np.random.Generator) -> str:
    insert(editor, node.outputs[0], [(node.op, node.attributes, [])], "twice")
    return f"{node.op} of {node.layer} is applied twice"


FAULT = Fault(
    name="activation-twice",
    kind=Kind.GRAPH,
    provenance="keras-onnx#555",
    repair="remove one",
    native=on_nodes(nodes_of(*_OPERATORS), _change),
)

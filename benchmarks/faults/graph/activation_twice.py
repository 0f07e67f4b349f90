"""An activation is applied once by the layer and once more behind it."""

from __future__ import annotations

import numpy as np
import onnx_ir

from benchmarks.faults.edits import insert_behind
from benchmarks.faults.fault import Change, Fault
from benchmarks.faults.native import nodes_of, on_nodes
from benchmarks.faults.places import operators
from conrepair.editors.editor import Editor
from conrepair.graph.kinds import Kind
from conrepair.graph.layer_graph import Node

__all__ = ["FAULT"]

_OPERATORS = ("HardSwish", "Sigmoid", "Tanh", "Elu", "Selu", "Softplus", "Mish", "Gelu", "Softmax")


def _change_native(editor: Editor, node: Node, _: np.random.Generator) -> str:
    editor.insert(node.outputs[0], [(node.op, node.attributes, [])], "twice")
    return f"{node.op} of {node.layer} is applied twice"


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    attributes = {name: attribute.value for name, attribute in node.attributes.items()}
    nodes = insert_behind(node.outputs[0], [(node.op_type, attributes, [])], "twice")
    return Change((node, *nodes), f"{node.name} is applied twice")


FAULT = Fault(
    name="activation-twice",
    kind=Kind.GRAPH,
    provenance="keras-onnx#555",
    repair="remove one",
    places=operators(*_OPERATORS),
    change=_change,
    native=on_nodes(nodes_of(*_OPERATORS), _change_native),
)

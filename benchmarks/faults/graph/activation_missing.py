"""An activation is lost, as one that was fused with its neighbour."""

from __future__ import annotations

import numpy as np
import onnx_ir

from benchmarks.faults.edits import bypass
from benchmarks.faults.fault import Change, Fault
from benchmarks.faults.native import ACTIVATIONS, nodes_of, on_nodes
from benchmarks.faults.places import operators
from conrepair.editors.editor import Editor
from conrepair.graph.kinds import Kind
from conrepair.graph.layer_graph import Node

__all__ = ["FAULT"]


def _change_native(editor: Editor, node: Node, _: np.random.Generator) -> str:
    editor.remove(node)
    return f"{node.op} of {node.layer} is gone"


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    name, operator = node.name, node.op_type
    return Change(bypass(node), f"{operator} {name} is gone")


FAULT = Fault(
    name="activation-missing",
    kind=Kind.GRAPH,
    provenance="docs/measured/converter-faults.md (tf2onnx: RELU_N1_TO_1), tensorflow-onnx#914",
    repair="insert it",
    places=operators(
        "Relu",
        "LeakyRelu",
        "Elu",
        "Selu",
        "HardSwish",
        "HardSigmoid",
        "Sigmoid",
        "Tanh",
        "Clip",
        "Gelu",
        "Softplus",
        "Mish",
    ),
    change=_change,
    native=on_nodes(nodes_of(*ACTIVATIONS), _change_native),
)

"""An activation is applied where there's none, as a fused one that was meant for another layer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir

from benchmarks.faults.edits import insert_behind
from benchmarks.faults.fault import Change, Fault
from benchmarks.faults.native import inserted_behind
from benchmarks.faults.places import is_float, nodes_with
from conrepair.editors.editor import Step
from conrepair.graph.kinds import Kind
from conrepair.graph.layer_graph import LayerGraph, Node

__all__ = ["FAULT"]

_STEPS: Sequence[Step] = [("Relu", {}, [])]


def _is_linear(node: onnx_ir.Node) -> bool:
    readers = {use.node.op_type for use in node.outputs[0].uses()}
    return is_float(node.outputs[0]) and not readers & {"Relu", "Clip"}


def _native_is_linear(graph: LayerGraph, node: Node) -> bool:
    return not {reader.op for reader in graph.consumers[node.outputs[0]]} & {"Relu", "Clip"}


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    nodes = insert_behind(node.outputs[0], _STEPS, "extra")
    return Change((node, *nodes), f"a Relu follows {node.name}")


FAULT = Fault(
    name="activation-extra",
    kind=Kind.GRAPH,
    provenance="tensorflow-onnx#914",
    repair="remove it",
    places=nodes_with(_is_linear, "Conv", "Gemm", "Add", "BatchNormalization"),
    change=_change,
    native=inserted_behind(
        ("Conv", "MatMul", "Add", "BatchNormalization"),
        lambda _: _STEPS,
        "extra",
        "a Relu follows {name}",
        _native_is_linear,
    ),
)

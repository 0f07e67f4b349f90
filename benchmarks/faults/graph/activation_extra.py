"""An activation is applied where there's none, as a fused one that was meant for another layer."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import inserted_behind
from benchmarks.faults.steps import Step
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import LayerGraph, Node

__all__ = ["FAULT"]

_STEPS: Sequence[Step] = [("Relu", {}, [])]


def _is_linear(graph: LayerGraph, node: Node) -> bool:
    return not {reader.op for reader in graph.consumers[node.outputs[0]]} & {"Relu", "Clip"}


FAULT = Fault(
    name="activation-extra",
    kind=Kind.GRAPH,
    provenance="tensorflow-onnx#914",
    repair="remove it",
    native=inserted_behind(
        ("Conv", "MatMul", "Add", "BatchNormalization"),
        lambda _: _STEPS,
        "extra",
        "a Relu follows {name}",
        _is_linear,
    ),
)

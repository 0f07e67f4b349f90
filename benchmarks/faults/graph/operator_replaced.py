"""An operator of two operands is another one."""

from __future__ import annotations

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import operator_changed
from conrepair.ground.graph.kinds import Kind

__all__ = ["FAULT"]

_OTHERS = {"Add": "Sub", "Sub": "Add", "Mul": "Add", "Div": "Mul", "Max": "Min", "Min": "Max"}


FAULT = Fault(
    name="operator-replaced",
    kind=Kind.GRAPH,
    provenance="onnxruntime#18959, tvm#12734",
    repair="the operator",
    native=operator_changed(_OTHERS, lambda graph, node: graph.tensors[node.outputs[0]].is_real),
)

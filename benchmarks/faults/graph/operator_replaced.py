"""An operator of two operands is another one."""

from __future__ import annotations

import numpy as np
import onnx_ir

from benchmarks.faults.fault import Change, Fault
from benchmarks.faults.native import operator_changed
from benchmarks.faults.places import is_float, nodes_with
from conrepair.graph.kinds import Kind

__all__ = ["FAULT"]

_OTHERS = {"Add": "Sub", "Sub": "Add", "Mul": "Add", "Div": "Mul", "Max": "Min", "Min": "Max"}


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    before, node.op_type = node.op_type, _OTHERS[node.op_type]
    return Change((node,), f"{node.name} is {node.op_type} instead of {before}")


FAULT = Fault(
    name="operator-replaced",
    kind=Kind.GRAPH,
    provenance="onnxruntime#18959, tvm#12734",
    repair="the operator",
    places=nodes_with(lambda node: is_float(node.outputs[0]), *_OTHERS),
    change=_change,
    native=operator_changed(_OTHERS, lambda graph, node: graph.tensors[node.outputs[0]].is_real),
)

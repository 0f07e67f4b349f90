"""An activation is taken for a similar one."""

from __future__ import annotations

import numpy as np
import onnx_ir

from benchmarks.faults.fault import Change, Fault
from benchmarks.faults.native import operator_changed
from benchmarks.faults.places import operators
from conrepair.graph.kinds import Kind

__all__ = ["FAULT"]

_OTHERS = {
    "Elu": "Relu",
    "HardSigmoid": "Sigmoid",
    "HardSwish": "Relu",
    "LeakyRelu": "Relu",
    "Relu": "LeakyRelu",
    "Selu": "Elu",
    "Sigmoid": "HardSigmoid",
    "Softplus": "Relu",
    "Softsign": "Tanh",
    "Tanh": "Softsign",
}


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    before, node.op_type = node.op_type, _OTHERS[node.op_type]
    node.attributes.clear()
    return Change((node,), f"{node.name} is {node.op_type} instead of {before}")


FAULT = Fault(
    name="activation-replaced",
    kind=Kind.GRAPH,
    provenance="onnx-tool#39, Paddle#44820",
    repair="the operator",
    places=operators(*_OTHERS),
    change=_change,
    native=operator_changed({**_OTHERS, "Swish": "HardSwish"}),
)

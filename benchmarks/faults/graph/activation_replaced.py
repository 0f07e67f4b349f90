"""An activation is taken for a similar one."""

from __future__ import annotations

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import operator_changed
from conrepair.ground.graph.kinds import Kind

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


FAULT = Fault(
    name="activation-replaced",
    kind=Kind.GRAPH,
    provenance="onnx-tool#39, Paddle#44820",
    repair="the operator",
    native=operator_changed({**_OTHERS, "Swish": "HardSwish"}),
)

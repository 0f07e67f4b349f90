"""The gates of a recurrent layer are in another library's order."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.faults.edits import constant_of, set_constant
from conrepair.faults.fault import Change, Fault, Kind
from conrepair.faults.places import nodes_with

__all__ = ["FAULT"]

_GATES = {"GRU": 3, "LSTM": 4}


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    count = _GATES[node.op_type]
    for index in (1, 2):
        array = constant_of(node, index)
        if array is not None:
            gates = np.split(array, count, axis=1)
            set_constant(node, index, np.concatenate([gates[1], gates[0], *gates[2:]], axis=1))
    return Change((node,), f"the first two gates of {node.name} are exchanged")


FAULT = Fault(
    name="gates-permuted",
    kind=Kind.PARAMETERS,
    provenance="keras-onnx#89, ngraph#3733, onnx-tensorflow#227",
    repair="the order of the gates",
    places=nodes_with(lambda node: constant_of(node, 1) is not None, *_GATES),
    change=_change,
)

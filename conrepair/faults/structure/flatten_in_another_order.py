"""Channels last are flattened as if they were first: the weights behind expect another order."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.faults.edits import insert_between
from conrepair.faults.fault import Change, Fault, Kind
from conrepair.faults.places import nodes_with, rank_of

__all__ = ["FAULT"]


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    nodes = insert_between(node, 0, [("Transpose", {"perm": [0, 2, 3, 1]}, [])], "flattened")
    return Change((*nodes, node), f"{node.name} flattens channels last")


FAULT = Fault(
    name="flatten-in-another-order",
    kind=Kind.STRUCTURE,
    provenance="nn-transfer#16, MMdnn#595, onnx2keras#113",
    repair="a Transpose in front, or the weights' rows",
    places=nodes_with(lambda node: rank_of(node.inputs[0]) == 4, "Flatten", "Reshape"),
    change=_change,
)

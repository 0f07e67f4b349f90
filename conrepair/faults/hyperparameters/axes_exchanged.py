"""Two axes of equal length are exchanged by a Transpose."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.faults.fault import Change, Fault, Kind
from conrepair.faults.places import nodes_with, rank_of, sizes_of

__all__ = ["FAULT"]


def _twins(node: onnx_ir.Node) -> tuple[int, int] | None:
    """Two axes of the result that are as long as one another."""
    sizes = sizes_of(node.outputs[0])
    for one, size in enumerate(sizes):
        for two in range(one + 1, len(sizes)):
            if size is not None and size > 1 and sizes[two] == size:
                return one, two
    return None


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    twins = _twins(node)
    if twins is None:
        raise ValueError(f"{node.name} has no axes of equal length")
    rank = rank_of(node.outputs[0]) or 0
    before = list(node.attributes["perm"].as_ints()) if "perm" in node.attributes else list(range(rank))[::-1]
    after = list(before)
    after[twins[0]], after[twins[1]] = before[twins[1]], before[twins[0]]
    node.attributes["perm"] = onnx_ir.AttrInt64s("perm", after)
    return Change((node,), f"{node.name}: perm {after} instead of {before}")


FAULT = Fault(
    name="axes-exchanged",
    kind=Kind.HYPERPARAMETERS,
    provenance="onnx2tf#317",
    repair="perm",
    places=nodes_with(lambda node: _twins(node) is not None, "Transpose"),
    change=_change,
)

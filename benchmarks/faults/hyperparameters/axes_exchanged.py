"""Two axes of equal length are exchanged by a Transpose."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import nodes_of, on_nodes, shape_of
from conrepair.formats.editing.editor import Editor
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Node

__all__ = ["FAULT"]


def _equal(sizes: Sequence[int | None]) -> tuple[int, int] | None:
    for one, size in enumerate(sizes):
        for two in range(one + 1, len(sizes)):
            if size is not None and size > 1 and sizes[two] == size:
                return one, two
    return None


def _exchanged(perm: Sequence[int], twins: tuple[int, int]) -> list[int]:
    result = list(perm)
    result[twins[0]], result[twins[1]] = perm[twins[1]], perm[twins[0]]
    return result


def _change(editor: Editor, node: Node, _: np.random.Generator) -> str:
    twins, before = _equal(shape_of(editor.graph, node.outputs[0])), node.attributes["perm"]
    if twins is None or not isinstance(before, tuple):
        raise ValueError(f"{node.name} has no axes of equal length")
    after = tuple(_exchanged([int(axis) for axis in before], twins))
    editor.set_attributes(node, {"perm": after})
    return f"{node.layer}: perm {after} instead of {before}"


FAULT = Fault(
    name="axes-exchanged",
    kind=Kind.HYPERPARAMETERS,
    provenance="onnx2tf#317",
    repair="perm",
    native=on_nodes(
        nodes_of(
            "Transpose",
            condition=lambda graph, node: (
                _equal(shape_of(graph, node.outputs[0])) is not None and "perm" in node.attributes
            ),
        ),
        _change,
    ),
)

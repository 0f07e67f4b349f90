"""Compute the pieces of a composite in NumPy, as they are and with one of them changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.graph.layer_graph import LayerGraph, Node
from conrepair.graph.operators import OPERATORS
from conrepair.localization.diagnosis.functions import GRID, UNARY, is_elementwise, run

__all__ = ["compute", "evaluate"]

Values = npt.NDArray[np.float64]

_OF_MANY = {"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "Softmax", "Transpose"}


def evaluate(nodes: Sequence[Node], begin: str, end: str) -> Values | None:
    """Compute elementwise nodes on the grid.

    Args:
        nodes: In order, all elementwise.
        begin: The only tensor that is read from outside.
        end: The tensor that is wanted.

    Returns:
        Values on `GRID`; None when something can't be computed.
    """
    found = (compute(nodes, {begin: GRID}) or {}).get(end)
    return None if found is None else found.reshape(GRID.shape)  # a lone number may have more axes


def compute(
    nodes: Sequence[Node], known: Mapping[str, Values], graph: LayerGraph | None = None
) -> dict[str, Values] | None:
    """Compute nodes in float64.

    Args:
        nodes: In order.
        known: What they read from outside, by the tensors' names.
        graph: Has the tensors' shapes, for nodes that give another one.

    Returns:
        All tensors by name; None when a node isn't one of those that can be computed here.
    """
    values = dict(known)
    with np.errstate(all="ignore"):
        for node in nodes:
            if len(node.outputs) != 1 or any(name not in values for name in node.inputs if name):
                return None
            read = [values[name] for name in node.inputs if name]
            try:
                result = _applied(node, read, graph)
            except (TypeError, ValueError):  # shapes or types that don't fit: a changed node may make them so
                return None
            if result is None:
                return None
            values[node.outputs[0]] = np.asarray(result, np.float64)
    return values


def _applied(node: Node, read: Sequence[Values], graph: LayerGraph | None) -> Any:
    attributes = node.attributes
    if not read:
        return None
    if (is_elementwise(node) or node.op not in UNARY) and (made := run(node, read)) is not None:
        return made
    if node.op == "SquaredDifference" and len(read) == 2:
        return np.square(read[0] - read[1])
    if node.op in _OF_MANY:
        return OPERATORS[node.op].compute(read[0], **attributes)
    if node.op == "Reshape":
        shape = None if graph is None else graph.tensors[node.outputs[0]].shape
        return None if shape is None else read[0].reshape(shape)
    if node.op == "MatMul" and set(node.parameters) <= {"weight", "bias"}:
        numbers = {role: parameter.numpy().astype(np.float64) for role, parameter in node.parameters.items()}
        bias = numbers.pop("bias", np.zeros(()))
        if len(read) + len(numbers) == 2:
            return OPERATORS[node.op].compute(*read, *numbers.values(), bias, **attributes)
    return None

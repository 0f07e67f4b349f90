"""The range of what an operator gives, from the range of what it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from conrepair.ground.graph.layer_graph import Node
from conrepair.ground.graph.operators import LINEAR, OPERATORS, QUANTIZING, family

_MOVED = {*family("move"), *QUANTIZING}
_SAME = {*_MOVED, "MaxPool"}

Interval = tuple[float, float]


def intervals(nodes: Sequence[Node], known: Mapping[str, Interval]) -> dict[str, Interval]:
    """Follow ranges through operators that make each number of one: with constants, and those that only move them.

    Through those that only move them ranges are followed backwards, too.

    Args:
        nodes: In their order.
        known: Smallest and largest value by tensor.

    Returns:
        Those that are known, and those that follow.
    """
    found = dict(known)
    for node in nodes:
        if node.inputs and node.inputs[0] in found and node.outputs[0] not in found:
            made = _made(node, *found[node.inputs[0]])
            if made is not None:
                found[node.outputs[0]] = made
    for node in reversed(nodes):
        if node.op in _MOVED and node.inputs and node.outputs[0] in found:
            found.setdefault(node.inputs[0], found[node.outputs[0]])
    return found


def _made(node: Node, low: float, high: float) -> Interval | None:
    if node.op in _SAME:
        return low, high
    if node.op == "Relu":
        return max(low, 0.0), max(high, 0.0)
    operand, first = node.parameters.get("operand"), bool(node.attributes.get("constant_first"))
    if operand is None or node.op not in LINEAR or (node.op == "Div" and first):
        return None
    values, ends = operand.numpy().astype(np.float64).reshape(1, -1), np.array([[low], [high]])
    if node.op == "Div" and not values.all():
        return None
    made = OPERATORS[node.op].compute(*((values, ends) if first else (ends, values)))
    return float(made.min()), float(made.max())

"""Normalizations that are written as means, differences and products."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Set

from conrepair.ground.graph.layer_graph import LayerGraph, Node

_ROOTS = {"Rsqrt", "Sqrt"}
_BETWEEN = {"Add", "Sub", "Mul", "Div", "Neg", "Square", "Pow", "Identity", "ReduceMean", "Reciprocal", *_ROOTS}


def normalizations(graph: LayerGraph) -> Mapping[str, str]:
    """The tensors of normalizations that are written in pieces.

    Each is what comes together again of a mean that goes into a root, and of what's computed from the mean besides;
    then factors and offsets that are constant.

    Args:
        graph: Of a network.

    Returns:
        For each tensor inside one, the normalization's result, which stands for itself.
    """
    found: dict[str, str] = {}
    places = {node.name: place for place, node in enumerate(graph.nodes)}
    for node in graph.nodes:
        if node.op in _ROOTS and not found.keys() & set(node.outputs):
            mean = _mean_before(graph, node)
            if mean is not None and (inside := _until_together(graph, places[mean.name], node)):
                found |= dict.fromkeys(inside, inside[-1])
    return found


def _mean_before(graph: LayerGraph, root: Node) -> Node | None:
    """The mean of squares that a root is computed from; where these are of differences to a mean, that one."""
    squares = _behind(graph, root.inputs[0], {"Add", "Identity"})
    if squares is None or squares.op != "ReduceMean":
        return None
    difference = _behind(graph, squares.inputs[0], {"Square", "Mul", "Pow", "Identity"})
    if difference is None or difference.op != "Sub" or len(difference.inputs) < 2:
        return squares
    mean = graph.producers.get(difference.inputs[1])
    centres = mean is not None and mean.op == "ReduceMean" and mean.inputs[0] == difference.inputs[0]
    return mean if centres else squares


def _behind(graph: LayerGraph, name: str, through: Set[str]) -> Node | None:
    """What computes a tensor, through some operators of one operand."""
    return graph.made_by(name, lambda node: node.op in through and len(set(node.inputs)) == 1)


def _until_together(graph: LayerGraph, begin: int, root: Node) -> list[str]:
    """What's computed from a mean, in order, up to where all of it is in one tensor; none where that never is.

    Args:
        graph: Of a network.
        begin: Place of the mean among the nodes.
        root: That it goes into.
    """
    inside = {graph.nodes[begin].outputs[0]: None}
    waiting = set(inside)  # for those that read them
    for node in itertools.islice(graph.nodes, begin + 1, None):
        if not waiting.intersection(node.inputs):
            continue
        if node.op not in _BETWEEN or waiting.intersection(graph.outputs):
            return []
        inside |= dict.fromkeys(node.outputs)
        waiting = {
            name
            for name in (*waiting, *node.outputs)
            if name in node.outputs or any(not inside.keys() >= set(item.outputs) for item in graph.consumers[name])
        }
        behind = graph.order[node.outputs[0]] > graph.order[root.outputs[0]]
        if behind and len(node.inputs) == 2 and waiting == set(node.outputs):
            return [*inside, *_with_constants(graph, node.outputs[0])]
    return []


def _with_constants(graph: LayerGraph, name: str) -> list[str]:
    """The factors and offsets behind a tensor that nothing else reads."""
    found: list[str] = []
    while name not in graph.outputs and len(readers := graph.consumers.get(name, ())) == 1:
        node = readers[0]
        if node.op not in {"Add", "Mul"} or len(node.inputs) != 1:
            break
        name = node.outputs[0]
        found.append(name)
    return found

"""What the tensors that attention is computed from are called."""

from __future__ import annotations

from collections.abc import Mapping

from conrepair.graph.layer_graph import LayerGraph, Node
from conrepair.localization.diagnosis.region import Side

__all__ = ["ROLES", "gives_scores", "is_product", "roles_of"]

ROLES = ("queries", "keys", "values")
"""In the order of operators that compute attention as a whole."""

_WHOLE = {"Attention", "ScaledDotProductAttention"}
_FAR = 6  # operators between a product and its softmax: a scale, a mask, casts


def is_product(node: Node) -> bool:
    """Whether a node multiplies two tensors."""
    return node.op == "MatMul" and len(set(filter(None, node.inputs))) == 2


def gives_scores(node: Node, graph: LayerGraph) -> bool:
    """Whether a product of two tensors is what a softmax makes weights of.

    Args:
        node: Of the graph.
        graph: The network's.
    """
    if not is_product(node):
        return False
    ahead = list(node.outputs)
    for _ in range(_FAR):
        readers = [reader for name in ahead for reader in graph.consumers.get(name, ())]
        if any(reader.op == "Softmax" for reader in readers):
            return True
        ahead = [name for reader in readers if reader.op != "MatMul" for name in reader.outputs]
    return False


def roles_of(side: Side) -> Mapping[str, str]:
    """What attention takes the tensors for that a piece reads; none of those that it doesn't tell.

    Args:
        side: The piece.
    """
    for node in side.nodes:
        if node.op in _WHOLE:
            return dict(zip(filter(None, node.inputs), ROLES, strict=False))
    origins = {**side.graph.feeding(side.begins), **{name: (name,) for name in side.begins}}
    found: dict[str, str] = {}
    weights: set[str] = set()
    for node in side.nodes:
        read = [{*origins.get(name, ())} for name in node.inputs]
        if gives_scores(node, side.graph):
            found |= dict.fromkeys(read[0] - read[1], "queries") | dict.fromkeys(read[1] - read[0], "keys")
        elif node.op == "MatMul" and len(read) == 2 and node.inputs[0] in weights:
            found |= dict.fromkeys(read[1] - read[0], "values")
        if node.op == "Softmax" or weights.intersection(node.inputs):
            weights.update(node.outputs)
    return found

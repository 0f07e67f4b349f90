"""Where graphs have attention that's written out: products, a scale, a mask, a softmax."""

from __future__ import annotations

import math
from collections.abc import Sequence

from conrepair.ground.graph.layer_graph import LayerGraph, Node

__all__ = ["scales_of", "scores_of", "sums_of"]


def sums_of(graph: LayerGraph) -> Sequence[Node]:
    """Sums of scores and a mask that nothing but a softmax reads."""
    return [
        node
        for node in graph.nodes
        if node.op == "Add"
        and graph.read_once(node.outputs[0])
        and graph.consumers[node.outputs[0]][0].op == "Softmax"
        and scores_of(graph, node) >= 0
    ]


def scores_of(graph: LayerGraph, node: Node) -> int:
    """Which operand of a sum is the scores; -1: none."""
    makers = [graph.producers.get(name) for name in node.inputs]
    return next((place for place, maker in enumerate(makers) if maker is not None and _multiplies(graph, maker)), -1)


def scales_of(graph: LayerGraph) -> Sequence[Node]:
    """Factors and divisors of scores, one number each."""
    return [node for node in graph.nodes if node.op in {"Mul", "Div"} and _multiplies(graph, node)]


def _multiplies(graph: LayerGraph, node: Node) -> bool:
    """Whether a node is a product of two computed matrices, or such a one with a scale."""
    if node.op == "MatMul":
        return not node.parameters
    number = node.parameters.get("operand")
    if (
        node.op not in {"Mul", "Div"}
        or number is None
        or not node.inputs
        or math.prod(number.shape) != 1
        or node.attributes.get("constant_first")
    ):
        return False
    maker = graph.producers.get(node.inputs[0])
    return maker is not None and maker.op == "MatMul" and _multiplies(graph, maker)

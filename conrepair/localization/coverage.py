"""How much of a target was compared: what wasn't looked at isn't right."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set

from conrepair.graph.layer_graph import LayerGraph, Node
from conrepair.localization.judgement import Judged
from conrepair.localization.result import Coverage

__all__ = ["coverage_of"]


def coverage_of(graph: LayerGraph, known: Set[str], judged: Sequence[Judged], explained: float | None) -> Coverage:
    """Count what lies between the tensors that are known and those that tell something.

    Args:
        graph: The target's.
        known: Tensors that the source's values are fed at.
        judged: All cuts; not all tell something.
        explained: Share of the outputs' error that comes in at the pieces at fault; None where outputs are right.
    """
    told = [item.cut.pair.target for item in judged if item.tells]
    seen = {node.name for name in told for node in graph.between(known, [name])}
    unseen = [node for node in graph.nodes if node.name not in seen]
    return Coverage(
        nodes=len(seen),
        all_nodes=len(graph.nodes),
        parameters=sum(_size(node) for node in graph.nodes if node.name in seen),
        all_parameters=sum(map(_size, graph.nodes)),
        unseen=tuple(dict.fromkeys(node.layer for node in unseen)),
        explained=explained,
    )


def _size(node: Node) -> int:
    return sum(math.prod(parameter.shape) for parameter in node.parameters.values())

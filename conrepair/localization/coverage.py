"""How much of a target was compared: what wasn't looked at isn't right."""

from __future__ import annotations

import math
from collections.abc import Sequence

from conrepair.graph.layer_graph import LayerGraph, Node
from conrepair.localization.measurement import Cut
from conrepair.localization.result import Coverage

__all__ = ["coverage_of"]


def coverage_of(graph: LayerGraph, cuts: Sequence[Cut], explained: float | None) -> Coverage:
    """Count what lies in front of the tensors that were compared.

    Args:
        graph: The target's.
        cuts: All measurements; not all tell something.
        explained: Share of the outputs' error that comes in at the pieces at fault; None where outputs are right.
    """
    ends = [cut.pair.target for cut in cuts if cut.tells]
    seen = {node.name for node in graph.between(list(graph.inputs), ends)}
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

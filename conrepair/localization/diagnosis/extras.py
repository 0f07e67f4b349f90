"""Nodes that only one of two networks has, one behind the other: what they are together."""

from __future__ import annotations

from collections.abc import Sequence

from conrepair.graph.layer_graph import LayerGraph, Node
from conrepair.localization.diagnosis.readings import as_written, fused
from conrepair.localization.diagnosis.region import Side
from conrepair.localization.diagnosis.steps import Step

__all__ = ["together"]


def together(nodes: Sequence[Node], graph: LayerGraph) -> list[Step]:
    """A chain of nodes as the one step that it is (a clamp is a Max and a Min), or else as it's written.

    Args:
        nodes: In order, each reading the one before.
        graph: That they are of.
    """
    begins = tuple(filter(None, nodes[0].inputs))
    chain = Side(graph, tuple(nodes), begins, nodes[-1].outputs[0])
    steps = fused(chain)
    return steps if len(steps) == 1 else as_written(chain)

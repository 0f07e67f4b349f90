"""Nodes of a network, as localization cuts it, in the graph that the format's editor has."""

from __future__ import annotations

from conrepair.graph.layer_graph import LayerGraph, Node

__all__ = ["EditorNodes"]


class EditorNodes:
    """Finds nodes by what the file calls them."""

    def __init__(self, graph: LayerGraph) -> None:
        """Look into a graph.

        Args:
            graph: The editor's.
        """
        self._graph = graph
        self._by_layer: dict[str, list[Node]] = {}
        for node in graph.nodes:
            for name in {node.layer, node.name}:
                self._by_layer.setdefault(name, []).append(node)

    def of(self, node: Node) -> Node | None:
        """The editor's node; None where the file has no single one.

        Args:
            node: Of the network.
        """
        produced = [self._graph.producers[name] for name in node.outputs if name in self._graph.producers]
        candidates = [*produced, *self._by_layer.get(node.layer, ())]
        same = [item for item in candidates if item.op == node.op]
        return next(iter(same or candidates), None)

    def tensor(self, name: str) -> str | None:
        """A tensor, if the editor's graph has it."""
        return name if name in self._graph.tensors else None

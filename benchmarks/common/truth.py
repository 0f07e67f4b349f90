"""Where an injected fault is, in the names of the model that it was injected into."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir

__all__ = ["Truth", "named_nodes", "truth_of"]


@dataclass(frozen=True)
class Truth:
    """What a diagnosis should name.

    Attributes:
        target: Layers as the faulty file calls them.
        source: Layers as the right one calls them: those at fault, those that are gone, and the neighbours of
            inserted ones, also inputs of the graph.
    """

    target: frozenset[str]
    source: frozenset[str]


def truth_of(before: frozenset[str], after: onnx_ir.Graph, at_fault: frozenset[str]) -> Truth:
    """Where a fault is.

    Args:
        before: From `named_nodes`, of the graph without the fault.
        after: The graph with it.
        at_fault: Nodes that the injection names.
    """
    names = named_nodes(after)
    own = (at_fault & before) | (before - names)
    inserted = [node for node in after if _name(node) in at_fault - before]
    return Truth(at_fault, frozenset(own | _neighbours(inserted, before)))


def named_nodes(graph: onnx_ir.Graph) -> frozenset[str]:
    """Names of all nodes, as an injection gives them."""
    return frozenset(_name(node) for node in graph if node.op_type != "Constant")


def _name(node: onnx_ir.Node) -> str:
    return str(node.name or node.outputs[0].name)


def _neighbours(inserted: list[onnx_ir.Node], known: frozenset[str]) -> set[str]:
    """The closest nodes on both sides that the other graph has too."""
    found: set[str] = set()
    seen: set[tuple[onnx_ir.Node, bool]] = set()
    for forwards in (True, False):
        ahead = list(inserted)
        while ahead:
            node = ahead.pop()
            found |= set() if forwards else _fed(node)
            for other in _next(node, forwards=forwards):
                if _name(other) in known:
                    found.add(_name(other))
                elif (other, forwards) not in seen:
                    seen.add((other, forwards))
                    ahead.append(other)
    return found


def _fed(node: onnx_ir.Node) -> set[str]:
    """Inputs of the graph that a node reads."""
    return {str(value.name) for value in node.inputs if value is not None and value.is_graph_input()}


def _next(node: onnx_ir.Node, *, forwards: bool) -> list[onnx_ir.Node]:
    if forwards:
        return [use.node for output in node.outputs for use in output.uses()]
    producers = [value.producer() for value in node.inputs if value is not None]
    return [producer for producer in producers if producer is not None]

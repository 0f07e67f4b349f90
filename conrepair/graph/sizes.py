"""Leave out of a graph what only computes sizes: no layer, and a number once the inputs' sizes are fixed."""

from __future__ import annotations

from dataclasses import replace

from conrepair.graph.layer_graph import LayerGraph, Node

_ASKING = {"Shape", "Size"}


def without_sizes(graph: LayerGraph) -> LayerGraph:
    """The graph without nodes that compute whole numbers from nothing but the sizes of tensors.

    What reads those has "" for them, and so isn't taken for something that depends on the tensors whose sizes were
    asked for. Outputs of the network stay, whatever they're computed from. What was left out is in `Node.sizes` of
    what reads it.

    Args:
        graph: As a framework's file has it.
    """
    kept: list[Node] = []
    gone: dict[str, Node] = {}
    for node in graph.nodes:
        read = [name for name in node.inputs if name]
        whole = not any(graph.tensors[name].is_real or name in graph.outputs for name in node.outputs)
        sizes = {place: gone[name] for place, name in enumerate(node.inputs) if name in gone}
        left = replace(node, inputs=tuple("" if name in gone else name for name in node.inputs), sizes=sizes)
        if whole and (node.op in _ASKING or (read and gone.keys() >= set(read))):
            gone.update(dict.fromkeys(node.outputs, left))
        else:
            kept.append(left)
    if not gone:
        return graph
    tensors = {name: tensor for name, tensor in graph.tensors.items() if name not in gone}
    return LayerGraph(graph.inputs, graph.outputs, tensors, tuple(kept))

"""Leave out of a graph what only computes sizes: no layer, and a number once the inputs' sizes are fixed."""

from __future__ import annotations

from dataclasses import replace

from conrepair.graph.layer_graph import LayerGraph

__all__ = ["without_sizes"]

_ASKING = {"Shape", "Size"}


def without_sizes(graph: LayerGraph) -> LayerGraph:
    """The graph without nodes that compute whole numbers from nothing but the sizes of tensors.

    What reads those has "" for them, and so isn't taken for something that depends on the tensors whose sizes were
    asked for. Outputs of the network stay, whatever they're computed from.

    Args:
        graph: As a framework's file has it.
    """
    kept, gone = [], set[str]()
    for node in graph.nodes:
        read = [name for name in node.inputs if name]
        whole = not any(graph.tensors[name].is_real or name in graph.outputs for name in node.outputs)
        if whole and (node.op in _ASKING or (read and gone.issuperset(read))):
            gone.update(node.outputs)
        else:
            kept.append(replace(node, inputs=tuple("" if name in gone else name for name in node.inputs)))
    if not gone:
        return graph
    tensors = {name: tensor for name, tensor in graph.tensors.items() if name not in gone}
    return LayerGraph(graph.inputs, graph.outputs, tensors, tuple(kept))

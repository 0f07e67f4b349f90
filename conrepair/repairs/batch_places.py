"""Where in each tensor the batch is, for shapes that must hold for any batch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from conrepair.graph.layer_graph import LayerGraph, Node
from conrepair.graph.operators import ELEMENTWISE_BINARY

__all__ = ["BatchPlace", "batch_places", "place_in_shape"]


@dataclass(frozen=True)
class BatchPlace:
    """Where a tensor has the batch.

    Attributes:
        axis: That it's in.
        lead: What is in front of it in the same axis, where others were put together with it.
    """

    axis: int
    lead: int = 1


def batch_places(graph: LayerGraph) -> Mapping[str, BatchPlace]:
    """Follow the batch from the inputs, where it's the first axis, through a network.

    Args:
        graph: Opened with a batch.

    Returns:
        By tensor; tensors in which the batch isn't found have none.
    """
    sizes = [shape[0] for name in graph.inputs if (shape := graph.tensors[name].shape)]
    batch = sizes[0] if sizes else 1
    found = dict.fromkeys((name for name in graph.inputs if graph.tensors[name].shape), BatchPlace(0))
    for node in graph.nodes:
        read = next((name for name in node.inputs if name in found), None)
        if read is None:
            continue
        for name in node.outputs:
            place = _behind(node, found[read], graph.tensors[read].shape, graph.tensors[name].shape)
            shape = graph.tensors[name].shape
            if place is None or shape is None or not 0 <= place.axis < len(shape):
                continue
            if shape[place.axis] % (place.lead * batch) == 0:
                found[name] = place
    return found


def place_in_shape(place: BatchPlace, before: tuple[int, ...], after: tuple[int, ...]) -> BatchPlace | None:
    """Where the batch comes to lie when a tensor is seen in another shape.

    Args:
        place: Where it's before.
        before: The tensor's shape.
        after: Its new one.

    Returns:
        None where it's torn apart.
    """
    # As many numbers as come in front of it before must come in front of it afterwards.
    front, whole = math.prod(before[: place.axis]) * place.lead, 1
    for axis, size in enumerate(after):
        if whole <= front < whole * size:
            return BatchPlace(axis, front // whole) if front % whole == 0 else None
        whole *= size
    return None


def _behind(
    node: Node, place: BatchPlace, before: tuple[int, ...] | None, after: tuple[int, ...] | None
) -> BatchPlace | None:
    """Where the batch is in what a node gives."""
    if before is None or after is None:
        return None
    axis = place.axis
    perm, axes = node.attributes.get("perm"), node.attributes.get("axes")
    if node.op == "Transpose" and isinstance(perm, tuple):
        return replace(place, axis=[int(item) for item in perm].index(axis))
    if node.op == "Reshape":
        return place_in_shape(place, before, after)
    gone: list[int] = []
    if node.op.startswith("Reduce") and len(after) < len(before) and isinstance(axes, tuple):
        gone = [int(item) for item in axes]
    elif node.op == "Gather" and "table" not in node.parameters and len(after) < len(before):
        gone = [node.integer("axis", 0)]
    if axis in gone:
        return None
    # What is broadcast with a tensor of more axes gets them in front.
    more = len(after) - len(before) if node.op in {*ELEMENTWISE_BINARY, "MatMul"} else 0
    return replace(place, axis=axis - sum(item < axis for item in gone) + max(more, 0))

"""Which axis of each tensor the batch is in, for shapes that must hold for any batch."""

from __future__ import annotations

import math
from collections.abc import Mapping

from conrepair.graph.layer_graph import LayerGraph, Node

__all__ = ["batch_axes", "batch_axis_of_shape"]


def batch_axes(graph: LayerGraph) -> Mapping[str, int]:
    """Follow the batch from the inputs, where it's the first axis, through a network.

    Args:
        graph: Opened with a batch.

    Returns:
        The axis by tensor; tensors in which the batch isn't found have none.
    """
    sizes = [shape[0] for name in graph.inputs if (shape := graph.tensors[name].shape)]
    batch = sizes[0] if sizes else 1
    found = dict.fromkeys((name for name in graph.inputs if graph.tensors[name].shape), 0)
    for node in graph.nodes:
        read = next((name for name in node.inputs if name in found), None)
        if read is None:
            continue
        for name in node.outputs:
            axis = _behind(node, found[read], graph.tensors[read].shape, graph.tensors[name].shape)
            shape = graph.tensors[name].shape
            if axis is not None and shape is not None and 0 <= axis < len(shape) and shape[axis] % batch == 0:
                found[name] = axis
    return found


def batch_axis_of_shape(axis: int, before: tuple[int, ...], after: tuple[int, ...]) -> int | None:
    """Where the batch comes to lie when a tensor is seen in another shape.

    Args:
        axis: It's in before.
        before: The tensor's shape.
        after: Its new one.

    Returns:
        The axis; None where it's torn apart.
    """
    # As many places as come in front of it before must come in front of it afterwards.
    front, whole = math.prod(before[:axis]), 1
    for place, size in enumerate(after):
        if whole <= front < whole * size:
            return place if front % whole == 0 else None
        whole *= size
    return None


def _behind(node: Node, axis: int, before: tuple[int, ...] | None, after: tuple[int, ...] | None) -> int | None:
    """Where the batch is in what a node gives."""
    if before is None or after is None:
        return None
    perm, axes = node.attributes.get("perm"), node.attributes.get("axes")
    if node.op == "Transpose" and isinstance(perm, tuple):
        return [int(place) for place in perm].index(axis)
    if node.op == "Reshape":
        return batch_axis_of_shape(axis, before, after)
    gone: list[int] = []
    if node.op.startswith("Reduce") and len(after) < len(before) and isinstance(axes, tuple):
        gone = [int(place) for place in axes]
    elif node.op == "Gather" and "table" not in node.parameters and len(after) < len(before):
        gone = [int(str(node.attributes.get("axis") or 0))]
    if axis in gone:
        return None
    # What is broadcast with a tensor of more axes gets them in front.
    more = len(after) - len(before) if node.op in {"Add", "Sub", "Mul", "Div", "MatMul"} else 0
    return axis - sum(place < axis for place in gone) + max(more, 0)

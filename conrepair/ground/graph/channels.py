"""Which axis of a tensor has the channels, as far as the operators around it tell."""

from __future__ import annotations

from conrepair.ground.graph.layer_graph import Array, LayerGraph, Node
from conrepair.ground.graph.operators import WINDOWS

# Numbers for each channel, such as scales, beside those of a tensor.


def per_channel(numbers: Array, axis: int | None, rank: int) -> Array:
    """Numbers as they're broadcast with a tensor.

    Args:
        numbers: One, or one for each channel, of any shape.
        axis: Of the channels, negative from the end; None where there's one number for all.
        rank: Of the tensor.

    Returns:
        The same numbers, of that rank.
    """
    shape = [1] * rank
    if numbers.size != 1 and axis is not None:
        shape[axis] = -1
    return numbers.reshape(shape)


_WITH_CHANNELS = {*WINDOWS, "Resize", "DepthToSpace"}
_OTHER_AXES = {"MatMul", "Einsum", "Reshape", "Transpose", "Attention"}


def channel_axis(graph: LayerGraph, tensor: str, rank: int) -> int:
    """Where a tensor has its channels.

    Operators that have channels say so: what gives the tensor, what reads it, then what lies before, as long as axes
    stay what they are.

    Args:
        graph: That it's of.
        tensor: Its name.
        rank: How many axes it has, samples first.

    Returns:
        The axis: the one behind the samples where nothing tells otherwise, as heads of an attention are there.
    """
    maker = graph.producers.get(tensor)
    for node in (maker, *graph.consumers.get(tensor, ())):
        if node is not None and node.op in _WITH_CHANNELS:
            return _axis(node, rank)
    while maker is not None and maker.op not in _OTHER_AXES:
        if maker.op in _WITH_CHANNELS:
            return _axis(maker, rank)
        maker = graph.producers.get(next(filter(None, maker.inputs), ""))
    return 1


def _axis(node: Node, rank: int) -> int:
    return rank - 1 if node.channels_last else 1

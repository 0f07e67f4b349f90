"""Numbers for each channel, such as scales, beside those of a tensor."""

from __future__ import annotations

from conrepair.graph.layer_graph import Array

__all__ = ["per_channel"]


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

"""How an input of the target differs from the source's, in words."""

from __future__ import annotations

import math

import numpy as np

from conrepair.graph.kinds import Kind
from conrepair.graph.layer_graph import Array
from conrepair.localization.input_relation import explain_inputs
from conrepair.localization.matching import Pair
from conrepair.localization.measurement import Feeds
from conrepair.metrics.running_error import relative_l2

__all__ = ["correlation", "preparation_words"]

_ALIKE = 0.5  # correlation of two pictures that are the same one
_TOLERANCE = 0.01  # of an explanation: pictures of 8 bits are rounded


def preparation_words(pair: Pair, feeds: Feeds) -> tuple[Kind, str]:
    """What was done to an input, and which kind of fault that is.

    Args:
        pair: The input, in the layout that the target should be fed by.
        feeds: One batch for each network.
    """
    expected, given = feeds[0][pair.source], pair.layout.to_source(feeds[1][pair.target])
    error = relative_l2(expected, given)
    relation = explain_inputs(expected, given, tolerance=_TOLERANCE)
    if relation is not None and relation.is_identity:
        return Kind.PREPROCESSING, (
            f"`{pair.target}` is fed with nearly what the source's `{pair.source}` is (relative L2 {error:.2g}): "
            "constants rounded otherwise, or another decoder"
        )
    if relation is None:
        alike = correlation(expected, given)
        likely = "; such numbers come from another way of resizing or cutting" if alike > _ALIKE else ""
        return Kind.PREPROCESSING, (
            f"`{pair.target}` isn't fed with what the source's `{pair.source}` is (relative L2 {error:.2g}, "
            f"correlation {alike:.2f}), and no formula makes the one from the other{likely}"
        )
    kind = Kind.INPUT if relation.arranged.words else Kind.PREPROCESSING
    words = f"`{pair.target}`: {relation.evidence}"
    if np.array_equal(feeds[0][pair.source], feeds[1][pair.target]):
        words = f"a Transpose is missing behind `{pair.target}`, which gets what the source gets, as it lies: {words}"
    return kind, words


def correlation(one: Array, two: Array) -> float:
    """Of the values; 0 where it means nothing."""
    left, right = (np.asarray(array, np.float64).reshape(-1) for array in (one, two))
    left, right = left - left.mean(), right - right.mean()
    scale = float(np.linalg.norm(left) * np.linalg.norm(right))
    return float(left @ right) / scale if scale and math.isfinite(scale) else 0.0

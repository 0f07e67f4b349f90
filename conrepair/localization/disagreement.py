"""On which inputs two models disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from conrepair.evaluate.answers import as_scores
from conrepair.graph.layer_graph import Array
from conrepair.localization.layout import Layout

__all__ = ["disagreements"]

Flags = npt.NDArray[np.bool_]


def disagreements(
    ours: Mapping[str, Array],
    theirs: Mapping[str, Array],
    partners: Sequence[tuple[str, str]],
    layouts: Mapping[tuple[str, str], Layout],
    tolerance: float,
) -> Flags | None:
    """Look at the answers of a batch.

    Where an output is class scores, the best class counts; where it's whole numbers, all of them; otherwise the
    relative error of each sample.

    Args:
        ours: The source's outputs, samples first.
        theirs: The target's.
        partners: Names of outputs that stand for one another.
        layouts: How outputs lie in their partners, where that's known.
        tolerance: Relative L2 up to which two answers are the same.

    Returns:
        Whether the models disagree on each sample, on any output; None when no output can be compared.
    """
    found = [
        flags
        for one, two in partners
        if (flags := _differ(ours[one], theirs[two], layouts.get((one, two)), tolerance)) is not None
    ]
    return np.logical_or.reduce(found) if found else None


def _differ(one: Array, two: Array, layout: Layout | None, tolerance: float) -> Flags | None:
    scores = as_scores(one), as_scores(two)
    if scores[0] is not None and scores[1] is not None:
        return np.asarray(scores[0].argmax(axis=1) != scores[1].argmax(axis=1))
    if layout is not None and layout.target == two.shape:
        two = layout.to_source(two)
    if one.shape != two.shape or not one.ndim:
        return None
    left, right = (array.reshape(len(array), -1) for array in (one, two))
    if left.dtype.kind in "iub" and right.dtype.kind in "iub":
        return np.asarray((left != right).any(axis=1))
    left, right = left.astype(np.float64), right.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        errors = np.linalg.norm(right - left, axis=1)
        # NaN is a disagreement too, so the comparison is turned round.
        return np.asarray(~(errors <= tolerance * np.linalg.norm(left, axis=1)))

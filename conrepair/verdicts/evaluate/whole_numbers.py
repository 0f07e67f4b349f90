"""Outputs that are whole numbers, truth values or texts, such as classes and token ids: equal, or not.

A tolerance means nothing between two ids, so there's none unless somebody asks for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.ground.metrics.tensors import row_chunks
from conrepair.ground.runtime.words import percent
from conrepair.verdicts.evaluate.tolerance import Tolerance
from conrepair.verdicts.evaluate.verdict import Verdict

Array = npt.NDArray[Any]


def are_whole(*arrays: Array) -> bool:
    """Whether all are integers, truth values or texts; quantized outputs are reals by then."""
    return all(array.dtype.kind in "biuU" for array in arrays)


def are_texts(*arrays: Array) -> bool:
    """Whether one is of texts, so that nothing but equality means anything."""
    return any(array.dtype.kind == "U" for array in arrays)


def differing_share(one: Array, two: Array) -> float:
    """Share of elements that aren't equal."""
    return _differing(one, two)[0] / one.size if one.size else 0.0


def judge_whole(
    reference: Array, candidate: Array, tolerance: Tolerance, *, quantized: bool, narrow: str, ties: float | None
) -> tuple[Verdict, str]:
    """Judge an output of integers, booleans or texts.

    Args:
        reference: Integers, truth values or texts.
        candidate: The same, of its shape; their width doesn't matter.
        tolerance: From the configuration.
        quantized: Whether quantization was meant: then so large a share may differ as of the top-1 answers.
        narrow: A precision of few bits that is meant, or that the source has, in words; "" where there's none.
        ties: Share of these numbers that the source itself gives otherwise in another arithmetic; None when
            there's none.

    Returns:
        The verdict and its reason in words.
    """
    kind = "booleans" if reference.dtype.kind == candidate.dtype.kind == "b" else "integers"
    kind = "texts" if are_texts(reference, candidate) else kind
    count, first = _differing(reference, candidate)
    if first is None:
        return Verdict.EQUIVALENT, f"all {reference.size} {kind} are equal"
    words = (
        f"{count} of {reference.size} {kind} differ; the first, at index {list(first)}, is "
        f"{candidate[first]} instead of {reference[first]}"
    )
    share, most = count / reference.size, tolerance.quantized_top1
    if quantized and share <= most:
        return Verdict.QUANTIZED, f"a quantized model, error within the limit: {words}"
    if quantized:
        return Verdict.FAULTY, f"a quantized model, error above the limit ({percent(most)}): {words}"
    if ties is not None and share <= ties:
        return Verdict.UNDECIDED, (
            f"{words}. Can't tell rounding from a fault: in another arithmetic the original model itself changes "
            f"{percent(ties)} of them, as rounding decides between nearly equal values"
        )
    if narrow and share <= most:
        return Verdict.UNDECIDED, f"{words}; rounding to {narrow} may decide between nearly equal values"
    return Verdict.FAULTY, words


def _differing(one: Array, two: Array) -> tuple[int, tuple[int, ...] | None]:
    """How many elements differ, and the index of the first; numbers beside texts are compared as texts."""
    if are_texts(one, two):
        one, two = one.astype(np.str_), two.astype(np.str_)
    count, first = 0, None
    for rows in row_chunks(one.shape):
        places = np.argwhere(one[rows] != two[rows])
        count += len(places)
        if first is None and len(places):
            first = (rows.start + int(places[0][0]), *(int(index) for index in places[0][1:]))
    return count, first

"""Match the tensors of two networks: one assignment from all the evidence, in an order that both graphs allow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import scipy.optimize

from conrepair.localize.layout import Layout, layouts
from conrepair.localize.similarity import Matrix, Similarity
from conrepair.localize.structure import Neighbourhood, Structure

__all__ = ["EQUAL", "EXACT", "LEAST", "Likeness", "Pair", "match"]

EQUAL = 1e-3
"""Relative L2 below which two tensors are the same one, computed by two libraries: rounding is far below it, and two
tensors of a network are far above."""

LEAST = 0.45
"""Of a score from 0 to 1, for tensors whose values say nothing."""

_ROUNDING = 1e-6  # relative L2 below which it's chance which of two tensors is closer
_ROUNDS = 3
_SURMISE = 0.99  # the most that anything but values says
_FORBIDDEN = -1e3
_TELLING = 0.9  # correlation from which on values tell the layout, though a fault in front has changed them
_BY_VALUES = 10  # how much more a layout counts that values show than one that a shape suggests
_DIGITS = 7.0  # that two computations of one thing have in common at most


@dataclass(frozen=True)
class Likeness:
    """When two tensors are taken for the same one by their values.

    Attributes:
        error: Relative L2 below which they are.
        closer: Times the error to the closest tensor that they may differ by.
    """

    error: float = EQUAL
    closer: float = 30.0


EXACT = Likeness()
"""Of targets that compute with real numbers."""


@dataclass(frozen=True)
class Pair:
    """A tensor of the source and the tensor of the target that stands for it.

    Attributes:
        source: Name.
        target: Name.
        layout: How the one lies in the other.
        confidence: 0 to 1; 1 only where values say so.
        evidence: In words.
    """

    source: str
    target: str
    layout: Layout
    confidence: float
    evidence: str


def match(
    source: Neighbourhood,
    target: Neighbourhood,
    similarity: Similarity,
    structure: Structure,
    *,
    likeness: Likeness = EXACT,
    shaken: Matrix | float = 0.0,
    least: float = LEAST,
) -> list[Pair]:
    """Pair the tensors of two networks.

    Values decide where they are equal; where a fault in front changed them all, operators, weights (which are read
    only then), neighbours and places do. The assignment is the one with the largest sum of scores (Jonker and
    Volgenant's algorithm, as scipy.optimize.linear_sum_assignment has it), less the pairs that would contradict the
    order of better ones.

    Args:
        source: Tensors down.
        target: Tensors across.
        similarity: Of values.
        structure: Of the graphs.
        likeness: When values are the same.
        shaken: Added to the scores, for other guesses where values say nothing.
        least: Of a score from 0 to 1, for tensors whose values say nothing.

    Returns:
        In the target's order.
    """
    possible = similarity.layout >= 0
    ours, theirs = _results(source)[:, None], _results(target)[None, :]
    possible &= (ours == theirs) | (similarity.error < likeness.error)
    alike = (similarity.error < likeness.error) & _closest(similarity.error, likeness.closer)
    equal = possible & (similarity.proven | alike)
    ends = [place for place, name in enumerate(target.names) if name in target.graph.outputs]
    conclusive = all(bool(equal[:, place].any()) for place in ends)
    static = structure.surface if conclusive else 0.5 * structure.surface + 0.5 * structure.weights
    values = np.where(equal, 1.0, np.clip(similarity.correlation, 0, 1) ** 4)
    local = np.where(possible, np.maximum(static, 0.5 * values + 0.5 * static), 0.0)  # a fault changes all behind it
    score = local
    for _ in range(_ROUNDS):
        score = np.where(possible, 0.6 * local + 0.4 * structure.neighbours(score), 0.0)
    with np.errstate(divide="ignore"):
        digits = np.clip(-np.log10(similarity.error), 0, _DIGITS) / _DIGITS
    # What's computed from a tensor may come out right whatever it is: a softmax forgives an offset.
    shown = equal * (2.0 + 0.3 * digits) + (possible & alike)
    wish = np.where(possible, score + shaken + shown + (ours & theirs), _FORBIDDEN)
    rows, columns = scipy.optimize.linear_sum_assignment(wish, maximize=True)
    accepted = [(int(row), int(column)) for row, column in zip(rows, columns, strict=True) if possible[row, column]]
    accepted.sort(key=lambda pair: -wish[pair])
    same = _without_crossing([pair for pair in accepted if equal[pair]], source.reaches, target.reaches)
    guessed = [pair for pair in accepted if not equal[pair] and score[pair] >= least]
    kept = _in_order(same, guessed, source.reaches, target.reaches)
    kept.sort(key=lambda pair: pair[1])
    pairs = [_pair(source, target, similarity, score, equal, *pair) for pair in kept]
    told = [bool(equal[pair] or similarity.correlation[pair] >= _TELLING) for pair in kept]
    return _with_usual_layouts(pairs, told)


def _results(side: Neighbourhood) -> npt.NDArray[np.bool_]:
    """Which tensors are results of their network."""
    return np.array([name in side.graph.outputs for name in side.names], np.bool_)


def _closest(error: Matrix, closer: float) -> npt.NDArray[np.bool_]:
    """Whether no other source is much closer to a target; a normalization with a factor of 1 changes little."""
    best = error.min(axis=0, initial=np.inf, keepdims=True)
    return np.asarray(error <= closer * np.maximum(best, _ROUNDING))


def _without_crossing(
    pairs: list[tuple[int, int]], ours: npt.NDArray[np.bool_], theirs: npt.NDArray[np.bool_]
) -> list[tuple[int, int]]:
    """Leave out as few pairs as it takes for no two to contradict one another; of two, the worse one, which is later.

    A tensor that happens to have the same values as one far away contradicts whatever lies between.
    """
    rows, columns = (np.array([pair[side] for pair in pairs], np.int64) for side in range(2))
    crossed = ours[np.ix_(rows, rows)] & theirs[np.ix_(columns, columns)].T
    crossed |= crossed.T
    kept = np.ones(len(pairs), np.bool_)
    while kept.any() and (counts := (crossed & kept).sum(axis=1) * kept).any():
        kept[len(pairs) - 1 - int(counts[::-1].argmax())] = False
    return [pair for pair, stays in zip(pairs, kept, strict=True) if stays]


def _in_order(
    known: list[tuple[int, int]],
    pairs: list[tuple[int, int]],
    ours: npt.NDArray[np.bool_],
    theirs: npt.NDArray[np.bool_],
) -> list[tuple[int, int]]:
    """Add pairs, better ones first, that contradict none of those that are there."""
    size, count = len(known) + len(pairs), len(known)
    rows, columns = np.zeros(size, np.int64), np.zeros(size, np.int64)
    rows[:count], columns[:count] = np.array(known, np.int64).reshape(-1, 2).T
    for row, column in pairs:
        one, two = rows[:count], columns[:count]
        crossed = (ours[one, row] & theirs[column, two]) | (ours[row, one] & theirs[two, column])
        if not crossed.any():
            rows[count], columns[count] = row, column
            count += 1
    return list(zip(rows[:count].tolist(), columns[:count].tolist(), strict=True))


def _with_usual_layouts(pairs: list[Pair], told: list[bool]) -> list[Pair]:
    """Where values don't tell the layout: the one that most tensors of as many axes have, by values or by shape."""
    counts: dict[tuple[int, int], Counter[tuple[int, ...]]] = {}
    for pair, known in zip(pairs, told, strict=True):
        layout = pair.layout
        if known:
            counts.setdefault(_ranks(layout), Counter())[layout.axes] += _BY_VALUES
        elif layout.view != tuple(layout.view[axis] for axis in layout.axes):
            counts.setdefault(_ranks(layout), Counter())[layouts(layout.source, layout.target)[0].axes] += 1
    return [
        pair if known else replace(pair, layout=_usual(pair.layout, counts))
        for pair, known in zip(pairs, told, strict=True)
    ]


def _usual(layout: Layout, counts: Mapping[tuple[int, int], Counter[tuple[int, ...]]]) -> Layout:
    choices = layouts(layout.source, layout.target)
    for axes, _ in counts.get(_ranks(layout), Counter()).most_common():
        for choice in choices:
            if choice.axes == axes:
                return choice
    return choices[0]


def _ranks(layout: Layout) -> tuple[int, int]:
    return len(layout.source), len(layout.target)


def _pair(
    source: Neighbourhood,
    target: Neighbourhood,
    similarity: Similarity,
    score: Matrix,
    equal: npt.NDArray[np.bool_],
    row: int,
    column: int,
) -> Pair:
    layout = similarity.best_layout(row, column)
    if layout is None:
        raise ValueError("a pair without a layout")
    if equal[row, column]:
        same = f"the same values (relative error {similarity.error[row, column]:.1e}, {layout})"
        words = "what's computed from it comes out right" if similarity.proven[row, column] else same
        return Pair(source.names[row], target.names[column], layout, 1.0, words)
    return Pair(
        source.names[row],
        target.names[column],
        layout,
        float(np.clip(score[row, column], 0, _SURMISE)),
        f"operators, weights and neighbours (correlation of the values {similarity.correlation[row, column]:.2f})",
    )

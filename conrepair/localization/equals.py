"""Pair the tensors of two networks whose values are the same, or that are proven."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy

from conrepair.localization.crossing import Place, contradictions, without_crossing
from conrepair.localization.neighbourhood import Neighbourhood, neighbours_of
from conrepair.localization.samples import Matrix, Places
from conrepair.localization.similarity import Similarity
from conrepair.localization.structure import AROUND, OWN, ROUNDS, Structure

__all__ = ["EQUAL", "EXACT", "ComparedNetworks", "Likeness", "Same", "equal_pairs"]

EQUAL = 1e-3
"""Relative L2 below which two tensors are the same one, computed by two libraries: rounding is far below it, and two
tensors of a network are far above."""

_ROUNDING = 1e-6  # relative L2 below which it's chance which of two tensors is closer
_DIGITS = 7.0  # that two computations of one thing have in common at most
_NOT_PAIRED = 16.0  # cost of a tensor without a partner, more than a pair can be worth


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
class ComparedNetworks:
    """What two networks are compared by.

    Attributes:
        source: Tensors of the network that is right, down.
        target: Of the other, across.
        similarity: Of values; grows.
        structure: Of the graphs.
        likeness: When values are the same.
    """

    source: Neighbourhood
    target: Neighbourhood
    similarity: Similarity
    structure: Structure
    likeness: Likeness = EXACT


@dataclass(frozen=True)
class Same:
    """What is paired by values.

    Attributes:
        pairs: Places in the source and in the target, the surest first; none contradicts another.
        errors: Relative L2 of each; infinite where no layout fits.
        partners: Of each tensor of the source its partner's place, and of each of the target; -1 for none.
        conclusive: Whether every result of the target may be paired by its values.
    """

    pairs: list[Place]
    errors: list[float]
    partners: tuple[Places, Places]
    conclusive: bool


def equal_pairs(sides: ComparedNetworks) -> Same:
    """Pair what has the same values; of several that have, those that are the same in their networks, too."""
    source, target, similarity, likeness = sides.source, sides.target, sides.similarity, sides.likeness
    known = similarity.known()
    results = source.results[known.rows], target.results[known.columns]
    close = (known.error < likeness.error) | known.apart
    alike = close & (known.error <= likeness.closer * np.maximum(known.closest, _ROUNDING))
    equal = ((results[0] == results[1]) | close) & (known.proven | alike)
    rows, columns, error = known.rows[equal], known.columns[equal], known.error[equal]
    ends = np.zeros(len(target.names), np.bool_)
    ends[columns] = True
    with np.errstate(divide="ignore"):
        digits = np.clip(-np.log10(error), 0, _DIGITS) / _DIGITS
    # What's computed from a tensor may come out right whatever it is: a softmax forgives an offset.
    wish = _scores(sides, rows, columns) + 2.0 + 0.3 * digits
    wish += alike[equal].astype(float) + (results[0] & results[1])[equal]
    chosen = _assigned(rows, columns, wish)
    chosen = chosen[np.argsort(-wish[chosen], kind="stable")]
    pairs = list(zip(rows[chosen].tolist(), columns[chosen].tolist(), strict=True))
    stay = without_crossing(contradictions(source, target, pairs))
    chosen, pairs = chosen[stay], [pairs[place] for place in stay]
    partners = np.full(len(source.names), -1), np.full(len(target.names), -1)
    partners[0][rows[chosen]], partners[1][columns[chosen]] = columns[chosen], rows[chosen]
    return Same(pairs, error[chosen].tolist(), partners, bool(ends[target.results].all()))


def _assigned(rows: Places, columns: Places, wish: Matrix) -> Places:
    """Which of some pairs are chosen: the largest sum of wishes, no tensor twice.

    Where a tensor has one partner, and that one no other, there's nothing to choose. Of the others, each may stay
    alone (Jonker and Volgenant's algorithm for sparse matrices, as scipy.sparse.csgraph has it).
    """
    ours, theirs = (np.bincount(side, minlength=1) for side in (rows, columns))
    single = (ours[rows] == 1) & (theirs[columns] == 1)
    several = np.flatnonzero(~single)
    if not len(several):
        return np.flatnonzero(single)
    (left, down), (right, across) = (np.unique(side[several], return_inverse=True) for side in (rows, columns))
    alone = np.arange(len(left))
    costs = np.concatenate([_NOT_PAIRED - wish[several], np.full(len(left), _NOT_PAIRED)])
    places = np.concatenate([down, alone]), np.concatenate([across, len(right) + alone])
    matrix = scipy.sparse.csr_array((costs, places), shape=(len(left), len(right) + len(left)))
    found = scipy.sparse.csgraph.min_weight_full_bipartite_matching(matrix)
    pair = {(row, column): place for row, column, place in zip(down, across, several, strict=True)}
    chosen = [pair[key] for key in zip(*found, strict=True) if key in pair]
    return np.sort(np.concatenate([np.flatnonzero(single), np.array(chosen, np.int64)]))


def _scores(sides: ComparedNetworks, rows: Places, columns: Places) -> Matrix:
    """Of pairs with equal values, what operators, places, names and neighbours say of each, 0 to 1."""
    own = 0.5 + 0.5 * sides.structure.surface(rows, columns)
    before, behind = (_Around(sides, near, rows, columns) for near in neighbours_of(sides.source, sides.target))
    score = own
    for _ in range(ROUNDS):
        score = OWN * own + AROUND * (before.agreement(score) + behind.agreement(score)) / 2
    return score


class _Around:
    """The neighbours on one side of the tensors of some pairs."""

    def __init__(self, sides: ComparedNetworks, near: tuple[Places, Places], rows: Places, columns: Places) -> None:
        self._ours, self._theirs = near[0][rows], near[1][columns]
        self._terms: list[tuple[int, Places, Places, Matrix]] = []
        width = sides.similarity.size[1]
        keys = rows * width + columns
        order = np.argsort(keys)
        for one, two, chosen in self._slots():
            left, right = self._ours[chosen, one], self._theirs[chosen, two]
            wanted = left * width + right
            found = np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)
            place = np.where(keys[order[found]] == wanted, order[found], -1)
            # A pair whose values differ may be right, behind a fault.
            alike = sides.structure.surface(left, right) * sides.similarity.possible(left, right)
            other = np.where(place < 0, alike, 0.0)
            self._terms.append((one, chosen, place, other))

    def _slots(self) -> Iterator[tuple[int, int, Places]]:
        """Each two neighbours, and the pairs that have both."""
        for one in range(self._ours.shape[1]):
            for two in range(self._theirs.shape[1]):
                chosen = np.flatnonzero((self._ours[:, one] >= 0) & (self._theirs[:, two] >= 0))
                if len(chosen):
                    yield one, two, chosen

    def agreement(self, score: Matrix) -> Matrix:
        """For each pair the mean, over the one's neighbours, of the best score with a neighbour of the other's."""
        best = np.zeros(self._ours.shape)
        for one, chosen, place, other in self._terms:
            best[chosen, one] = np.maximum(best[chosen, one], np.where(place >= 0, score[place], other))
        count = (self._ours >= 0).sum(axis=1)
        nobody = (self._ours[:, 0] < 0) & (self._theirs[:, 0] < 0)
        return np.where(nobody, 1.0, best.sum(axis=1) / np.maximum(count, 1))

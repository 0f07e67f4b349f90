"""Guess which tensors belong together where their values differ: behind a fault, and where a network has others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from conrepair.localization.crossing import contradictions, in_order
from conrepair.localization.equals import ComparedNetworks, Same
from conrepair.localization.layout import Layout
from conrepair.localization.neighbourhood import Neighbourhood, neighbours_of
from conrepair.localization.samples import Matrix, Places
from conrepair.localization.structure import AROUND, OWN, ROUNDS, agreement
from conrepair.localization.windows import windows

__all__ = ["Guess", "Shake", "Wanted", "guessed_pairs"]

_FORBIDDEN = -1e3

Shake = Callable[[Places, Places], Matrix]
"""What's added to the scores of rows and columns, for other guesses."""


@dataclass(frozen=True)
class Wanted:
    """Which guesses are wanted.

    Attributes:
        least: Of a score from 0 to 1.
        shake: Of other guesses than the likeliest.
        first: Only the first ones behind what's known: where many tensors in a row aren't, the later ones are left.
        among: Places in the source, and in the target, that guesses are about; None for all.
    """

    least: float
    shake: Shake | None = None
    first: bool = False
    among: tuple[Places, Places] | None = None


@dataclass(frozen=True)
class Guess:
    """A pair that isn't shown by values.

    Attributes:
        row: Place in the source.
        column: Place in the target.
        score: 0 to 1.
        wish: The score, and what else it was chosen by.
        layout: The likeliest by the values.
        correlation: Of the values in that layout.
    """

    row: int
    column: int
    score: float
    wish: float
    layout: Layout
    correlation: float


def guessed_pairs(sides: ComparedNetworks, same: Same, wanted: Wanted) -> list[Guess]:
    """Guess, where values don't tell, by operators, weights (read only then), neighbours and places.

    Each assignment is of a few hundred tensors of both sides between the same known ones.

    Args:
        sides: Of which.
        same: What is paired by values.
        wanted: Which guesses are.

    Returns:
        The better ones first; none contradicts another, or what is known.
    """
    rest = [np.flatnonzero(side < 0) for side in same.partners]
    if wanted.among is not None:
        rest = [np.intersect1d(*both) for both in zip(rest, wanted.among, strict=True)]
    source, target = sides.source, sides.target
    places = _that_fit(rest[0], rest[1], sides)
    found: list[Guess] = []
    for rows, columns in windows(source, target, same.pairs, places, first=wanted.first):
        block = _Block(sides, same, rows, columns)
        found += block.guesses(wanted.least, wanted.shake)
    found.sort(key=lambda guess: -guess.wish)
    once = list({guess.column: guess for guess in reversed(found)}.values())[::-1]
    pairs = [*same.pairs, *((guess.row, guess.column) for guess in once)]
    count = len(same.pairs)
    kept = in_order(contradictions(source, target, pairs), range(count)) if once else []
    return [once[place - count] for place in kept]


def _that_fit(rows: Places, columns: Places, sides: ComparedNetworks) -> tuple[Places, Places]:
    """Those of some tensors that can have a partner among the others."""
    codes, table = sides.similarity.shapes
    ours = 2 * codes[0][rows] + sides.source.results[rows]
    theirs = 2 * codes[1][columns] + sides.target.results[columns]
    possible = np.zeros((2 * table.shape[0], 2 * table.shape[1]), np.bool_)
    for result in range(2):
        possible[result::2, result::2] = table
    present = np.isin(np.arange(possible.shape[0]), ours), np.isin(np.arange(possible.shape[1]), theirs)
    down, across = np.asarray(possible[:, present[1]].any(axis=1)), np.asarray(possible[present[0]].any(axis=0))
    return rows[down[ours]], columns[across[theirs]]


class _Block:
    """Some tensors of both networks, of which nothing is known, and what's known around them."""

    def __init__(self, sides: ComparedNetworks, same: Same, rows: Places, columns: Places) -> None:
        source, target, similarity, structure = sides.source, sides.target, sides.similarity, sides.structure
        self._rows, self._columns = rows, columns
        self._similarity = similarity
        self._compared = similarity.block(rows, columns)
        ours, theirs = self._with_context(source, target, same)
        down, across = ours[:, None], theirs[None, :]
        results = source.results[down], target.results[across]
        inner = slice(len(rows)), slice(len(columns))
        near = np.zeros((len(ours), len(theirs)), np.bool_)
        near[inner] = self._compared.error < sides.likeness.error
        near |= same.partners[0][down] == across
        self._possible = similarity.possible(down, across) & ((results[0] == results[1]) | near)
        self._possible[inner] &= ~similarity.apart.contradicts(rows[:, None], columns)
        static = structure.surface(down, across)
        if not same.conclusive:
            static = 0.5 * static + 0.5 * structure.weights(down, across)
        values = np.zeros(static.shape)
        values[inner] = np.where(
            self._compared.error < sides.likeness.error, 1.0, np.clip(self._compared.correlation, 0, 1) ** 4
        )
        values[same.partners[0][down] == across] = 1.0
        # A fault changes all behind it.
        local = np.where(self._possible, np.maximum(static, 0.5 * values + 0.5 * static), 0.0)
        self._score = _scored(local, self._possible, (source, target), (ours, theirs), inner)[inner]
        self._possible, self._ends = self._possible[inner], (results[0] & results[1])[inner]

    def _with_context(self, source: Neighbourhood, target: Neighbourhood, same: Same) -> tuple[Places, Places]:
        """The tensors, and behind them those around that have partners, and these."""
        found = []
        for side, places, partners in (
            (source, self._rows, same.partners[0]),
            (target, self._columns, same.partners[1]),
        ):
            near = np.unique(np.concatenate([side.before[places].ravel(), side.behind[places].ravel()]))
            near = near[near >= 0]
            found.append(near[partners[near] >= 0])
        known = np.union1d(found[0], same.partners[1][found[1]])
        return np.concatenate([self._rows, known]), np.concatenate([self._columns, same.partners[0][known]])

    def guesses(self, least: float, shake: Shake | None) -> list[Guess]:
        """The assignment with the largest sum of scores: Jonker and Volgenant's algorithm, as scipy.optimize has it.

        Args:
            least: Score of a guess.
            shake: What's added to the scores.
        """
        added = 0.0 if shake is None else shake(self._rows, self._columns)
        wish = np.where(self._possible, self._score + added + self._ends, _FORBIDDEN)
        found = []
        for row, column in zip(*scipy.optimize.linear_sum_assignment(wish, maximize=True), strict=True):
            if self._possible[row, column] and self._score[row, column] >= least:
                ours, theirs = int(self._rows[row]), int(self._columns[column])
                layout = self._compared.best_layout(row, column) or self._similarity.layout(ours, theirs)
                numbers = (matrix[row, column] for matrix in (self._score, wish, self._compared.correlation))
                score, wished, correlation = map(float, numbers)
                found.append(Guess(ours, theirs, score, wished, layout, correlation))
        return found


def _scored(
    local: Matrix,
    possible: npt.NDArray[np.bool_],
    sides: tuple[Neighbourhood, Neighbourhood],
    places: tuple[Places, Places],
    inner: tuple[slice, slice],
) -> Matrix:
    """What pairs are worth by themselves and by their neighbours; what's known around them stays as it is."""
    local_before, local_behind = (
        [_renumbered(neighbours, own) for neighbours, own in zip(found, places, strict=True)]
        for found in neighbours_of(*sides)
    )
    score = local
    for _ in range(ROUNDS):
        around = (agreement(score, *local_before) + agreement(score, *local_behind)) / 2
        following = local.copy()
        following[inner] = np.where(possible, OWN * local + AROUND * around, 0.0)[inner]
        score = following
    return score


def _renumbered(neighbours: Places, places: Places) -> Places:
    """The neighbours of some tensors, by their places among these; -2 for others."""
    number = np.full(len(neighbours) + 1, -2)
    number[places] = np.arange(len(places))
    number[-1] = -1
    return np.asarray(number[neighbours[places]])

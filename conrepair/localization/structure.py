"""How alike the tensors of two networks are by what surrounds them: operators, parameters, neighbours, names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from conrepair.graph.layer_graph import Node
from conrepair.localization.neighbourhood import Neighbourhood
from conrepair.localization.roles import roles
from conrepair.localization.samples import Matrix, Places
from conrepair.localization.weights import Fingerprints

__all__ = ["AROUND", "OWN", "ROUNDS", "Structure", "agreement"]

OWN, AROUND = 0.6, 0.4
"""Shares of a score that a pair has by itself, and by its neighbours."""

ROUNDS = 3
"""In which what's known of a pair reaches its neighbours."""

_MOST_WORDS = 2


class Structure:
    """Static evidence for pairs of tensors, 0 to 1.

    Pairs are given by the places of their tensors, arrays that broadcast: [n, 1] and [1, m] are n times m pairs.
    """

    def __init__(self, source: Neighbourhood, target: Neighbourhood) -> None:
        """Compare two networks.

        Args:
            source: Whose places are the rows.
            target: Whose places are the columns.
        """
        self._sides = source, target
        self._prints = Fingerprints(), Fingerprints()

    def surface(self, rows: Places, columns: Places) -> Matrix:
        """Operators, places and names: cheap, and weak."""
        return (
            0.6 * self._operators(rows, columns)
            + 0.25 * self._places(rows, columns)
            + 0.15 * self._names(rows, columns)
        )

    def weights(self, rows: Places, columns: Places) -> Matrix:
        """Whether the next weights before and behind are the same, up to a factor per output channel."""
        rows, columns = np.broadcast_arrays(rows, columns)
        found = np.zeros(rows.shape)
        for ours, theirs in zip(*self._anchors, strict=True):
            found += self._same_anchors(ours, theirs, rows, columns)
        return found / 2

    @cached_property
    def _anchors(self) -> tuple[tuple[list[Node | None], ...], ...]:
        """The next node with weights before each tensor, and behind it, of both sides."""
        return tuple(tuple(side.anchors(forward=forward) for forward in (False, True)) for side in self._sides)

    def _same_anchors(
        self, ours: Sequence[Node | None], theirs: Sequence[Node | None], rows: Places, columns: Places
    ) -> Matrix:
        (one, left), (two, right) = _numbered(ours, rows), _numbered(theirs, columns)
        alike = np.pad(self._prints[0].alike(one, two, self._prints[1]), ((0, 1), (0, 1)))  # the last ones: no node
        return np.asarray(alike[left, right])

    @cached_property
    def _roles(self) -> tuple[list[npt.NDArray[np.int64]], list[npt.NDArray[np.int64]]]:
        """Numbers for the operator, the family and the rest of each tensor's role, of both sides."""
        found = [roles(side.graph, side.names) for side in self._sides]
        parts = [_codes([[role[part] for role in side] for side in found]) for part in range(3)]
        return [part[0] for part in parts], [part[1] for part in parts]

    def _operators(self, rows: Places, columns: Places) -> Matrix:
        same, near, complete = (
            one[rows] == two[columns] for one, two in zip(self._roles[0], self._roles[1], strict=True)
        )
        return np.where(same & complete, 1.0, np.where(near, 0.5, 0.0))

    def _places(self, rows: Places, columns: Places) -> Matrix:
        one, two = (np.linspace(0, 1, len(side.names)) for side in self._sides)
        return np.asarray(1 - np.abs(one[rows] - two[columns]))

    @cached_property
    def _numbers(self) -> tuple[Places, Places]:
        """Numbers for the words in each tensor's name, [tensors, words]; those that only one side has are below 0."""
        found = [
            [sorted(_words(name, side.graph.producers.get(name))) for name in side.names] for side in self._sides
        ]
        common = set.intersection(*({word for words in side for word in words} for side in found))
        number = {word: place for place, word in enumerate(sorted(common))}
        sides = []
        for nobody, side in enumerate(found, 1):
            codes = np.full((len(side), _MOST_WORDS), -nobody, np.int64)
            for place, words in enumerate(side):
                codes[place, : len(words)] = [number.get(word, -nobody) for word in words]
            sides.append(codes)
        return sides[0], sides[1]

    def _names(self, rows: Places, columns: Places) -> Matrix:
        ours, theirs = self._numbers
        found = np.zeros(np.broadcast_shapes(rows.shape, columns.shape), np.bool_)
        for one in range(_MOST_WORDS):
            for two in range(_MOST_WORDS):
                found |= ours[:, one][rows] == theirs[:, two][columns]
        return found.astype(np.float64)


def _numbered(nodes: Sequence[Node | None], places: Places) -> tuple[list[Node], Places]:
    """The nodes of some tensors, each once, and for each tensor its number; -1 where there's none."""
    chosen, inverse = np.unique(places, return_inverse=True)
    number: dict[str, int] = {}
    found: list[Node] = []
    codes = np.full(len(chosen), -1, np.int64)
    for place, tensor in enumerate(chosen.tolist()):
        node = nodes[tensor]
        if node is not None:
            codes[place] = number.setdefault(node.name, len(found))
            if codes[place] == len(found):
                found.append(node)
    return found, codes[inverse.reshape(places.shape)]


def _codes(sides: Sequence[Sequence[str]]) -> list[npt.NDArray[np.int64]]:
    number = {word: place for place, word in enumerate(dict.fromkeys(word for side in sides for word in side))}
    return [np.array([number[word] for word in side], np.int64) for side in sides]


def agreement(score: Matrix, ours: Places, theirs: Places) -> Matrix:
    """For each pair the mean, over the source's neighbours, of the best score with a neighbour of the target's.

    Args:
        score: [rows, columns], 0 to 1.
        ours: Neighbours of each row, [rows, neighbours]; -1: there's none, -2: it's no row.
        theirs: The same of the columns.

    Returns:
        [rows, columns]; 1 where neither has a neighbour.
    """
    total, count = np.zeros(score.shape), (ours >= 0).sum(axis=1)[:, None]
    down = [np.flatnonzero(ours[:, one] >= 0) for one in range(ours.shape[1])]
    across = [np.flatnonzero(theirs[:, two] >= 0) for two in range(theirs.shape[1])]
    for one, rows in enumerate(down):
        if not len(rows):
            continue
        best = np.zeros((len(rows), score.shape[1]))
        for two, columns in enumerate(across):
            if len(columns) == score.shape[1]:
                np.maximum(best, score[np.ix_(ours[rows, one], theirs[:, two])], out=best)
            elif len(columns):
                found = score[np.ix_(ours[rows, one], theirs[columns, two])]
                best[:, columns] = np.maximum(best[:, columns], found)
        total[rows] += best
    nobody = (ours == -1).all(axis=1)[:, None] & (theirs == -1).all(axis=1)[None, :]
    return np.where(nobody, 1.0, total / np.maximum(count, 1))


def _words(name: str, node: Node | None) -> set[str]:
    """Names without what frameworks add: separators, upper case, output numbers."""
    names = {name} if node is None else {name, node.layer}
    return {re.sub(r"[^a-z0-9]+", "", re.sub(r":\d+$", "", item).lower()) for item in names} - {""}

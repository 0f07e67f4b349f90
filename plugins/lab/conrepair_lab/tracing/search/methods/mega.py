"""MEGA, after TracNe: a start at random, then evolution by differences, heavy tails and flipped bits.

Before it, or in place of it, a method that searches where the network amplifies changes, then where its sides differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from conrepair_lab.tracing.search.methods.crossing import Crossing, begun, numbers
from conrepair_lab.tracing.search.search import Answers, Array, Asking

_START, _FEWEST, _MOST = 0.1, 12, 200  # of the evaluations, drawn at random; at least, and at most
_PLACES = 12
_CROSSINGS = 8  # at once
_BITS = 15  # of a coordinate, beside its sign
_FORGOTTEN, _LEARNED, _LEAST = 0.97, 0.3, 0.1  # of a kind's worth, at each child


class Mega:
    """Evolution of a few points by several kinds of change, each of one coordinate up to all.

    Attributes:
        points: The best of the start, or what became of them.
        starts: Points to begin with.
    """

    def __init__(self, size: int, seed: int, evaluations: int, controls: Sequence[int], answers: Answers) -> None:
        """Nothing is evaluated yet.

        Args:
            size: Of points.
            seed: What is drawn follows from it.
            evaluations: That are planned.
            controls: Coordinates that change whole inputs, three of each, behind one that chooses a row of data.
            answers: What one side gives; its passes through zero are looked for.
        """
        self._generator = np.random.default_rng(seed)
        self._size, self._evaluations, self._spent = size, evaluations, 0
        self._controls = np.array(controls[len(controls) % 3 :], int).reshape(-1, 3)
        self._first = int(np.clip(evaluations * _START, _FEWEST, _MOST))
        self.points, self.starts = np.zeros((0, size)), list[Array]()
        self._scores, self._moves = np.zeros(0), np.zeros((_PLACES, size))
        self._kinds = [self._tails, self._bits, self._ends, self._drawn, self._difference, self._cross]
        # The last are those of whole inputs, of going on as before, and of passes through zero.
        self._worth = np.ones(len(self._kinds) + 3)
        self._worth[-1] = len(self._kinds)
        self._parents: list[tuple[int, int]] = []
        self._look, self._answers = answers, list[Array]()
        self._crossings, self._crossed = list[Crossing](), dict[int, Crossing]()

    def __call__(self, ask: Asking) -> NoReturn:
        """Evaluate the start, then children of the best."""
        while True:
            points = self._candidates(ask.room)
            self._learn(points, ask(points))

    def _candidates(self, count: int) -> Array:
        """The next points, of the start or of the children."""
        if self._spent < self._first:
            count = min(count, self._first - self._spent)
            return np.array([self.starts.pop() if self.starts else self.start() for _ in range(count)])
        return self._children(count)

    def _learn(self, candidates: Array, scores: Array) -> None:
        """Children that aren't worse take their parents' places."""
        self._spent += len(scores)
        answers = self._look(candidates)
        if not self._parents:
            points, known = np.concatenate([self.points, candidates]), np.append(self._scores, scores)
            best = np.argsort(-known, kind="stable")[:_PLACES]
            self.points, self._scores = points[best], known[best]
            every = [*self._answers, *map(numbers, answers)]
            self._answers = [every[place] for place in best]
        for row, crossing in self._crossed.items():
            crossing.told(candidates[row], answers[row])
        for row, ((place, kind), score) in enumerate(zip(self._parents, scores.tolist(), strict=False)):
            better = score > self._scores[place]
            self._worth[kind] = _FORGOTTEN * self._worth[kind] + _LEARNED * better
            if better or kind == len(self._kinds) + 1:
                self._moves[place] = (candidates[row] - self.points[place]) * better
            if score >= self._scores[place]:
                self.points[place], self._scores[place] = candidates[row], score
                self._answers[place] = numbers(answers[row])

    def start(self) -> Array:
        """Uniform; or all inputs at one scale; or whole inputs as they are, some of their elements at the ends."""
        generator = self._generator
        point, sort = generator.uniform(-1, 1, self._size), generator.integers(3)
        if sort == 2:
            point = np.where(generator.random(self._size) < generator.random(), np.sign(point), point)
        if sort:
            point[self._controls] = generator.uniform(-1, 1, 3) if sort == 1 else 0
        return point

    def _children(self, count: int) -> Array:
        generator, known = self._generator, len(self.points)
        narrow = 1 + 3 * self._spent / self._evaluations  # the later, the more of the best points
        ranked, worth = np.argsort(-self._scores, kind="stable"), np.cumsum(self._worth + _LEAST)
        places = ranked[(known * generator.random(count) ** narrow).astype(int)]
        kinds = np.searchsorted(worth, generator.random(count) * worth[-1], side="right")
        kinds[(kinds == len(self._kinds) + 1) & ~self._moves[places].any(axis=1)] = 0
        self._cross_zero(places, kinds)
        children, chances = self.points[places], generator.random((count, self._size), np.float32)
        chances[np.arange(count), generator.integers(self._size, size=count)] = 0
        rows, columns = np.nonzero(chances < self._size ** -generator.random((count, 1)))
        for kind, change in enumerate(self._kinds):
            if (chosen := np.flatnonzero(kinds[rows] == kind)).size:
                where = rows[chosen], columns[chosen]
                children[where] = change(children[where], *where)
        for row in np.flatnonzero(kinds == len(self._kinds)).tolist():
            self._control(children[row])
        for row in np.flatnonzero(kinds == len(self._kinds) + 1).tolist():
            children[row] += generator.uniform(0.5, 3) * self._moves[places[row]]
        for row, crossing in self._crossed.items():
            children[row] = crossing.point()
        self._parents = list(zip(places.tolist(), kinds.tolist(), strict=True))
        return np.asarray(np.clip(children, -1, 1, out=children))

    def _tails(self, values: Array, rows: Array, columns: Array) -> Array:
        """Steps of all sizes."""
        sizes = 10 ** self._generator.uniform(-3, 0, rows[-1] + 1)
        return np.asarray(values + sizes[rows] * self._generator.standard_cauchy(len(values)))

    def _bits(self, values: Array, rows: Array, columns: Array) -> Array:
        """A bit of coordinates flipped, or their sign."""
        bits = self._generator.integers(_BITS + 1, size=len(values))
        whole = np.round(np.abs(values) * (2**_BITS - 1)).astype(int)
        flipped = (whole ^ (1 << bits) % 2**_BITS) / (2**_BITS - 1) * np.where(bits < _BITS, 1, -1)
        return np.asarray(np.copysign(1, values) * flipped)

    def _ends(self, values: Array, rows: Array, columns: Array) -> Array:
        """Coordinates at an end of what they may be."""
        return self._generator.integers(2, size=len(values)) * 2.0 - 1

    def _drawn(self, values: Array, rows: Array, columns: Array) -> Array:
        """Coordinates drawn anew."""
        return self._generator.uniform(-1, 1, len(values))

    def _difference(self, values: Array, rows: Array, columns: Array) -> Array:
        """Differential evolution."""
        one, other = (self._cross(values, rows, columns) for _ in range(2))
        return np.asarray(values + self._generator.uniform(0.4, 1, rows[-1] + 1)[rows] * (one - other))

    def _cross(self, values: Array, rows: Array, columns: Array) -> Array:
        """Coordinates of another point."""
        others = self._generator.integers(len(self.points), size=rows[-1] + 1)
        return np.asarray(self.points[others[rows], columns])

    def _control(self, child: Array) -> None:
        """Another scale, spread or offset, of one input or of all; nothing else."""
        generator = self._generator
        if self._controls.size:
            which = self._controls[:, generator.integers(3)]
            which = which if generator.random() < 0.5 else which[generator.integers(len(which))]
            anew = generator.random() < 0.5
            child[which] = generator.uniform(-1, 1) if anew else child[which] + generator.normal(0, 0.1)

    def _cross_zero(self, places: Array, kinds: Array) -> None:
        """Go on with passes of the answers through zero, or begin some."""
        rows = np.flatnonzero(kinds == len(self._kinds) + 2)
        self._crossings = [item for item in self._crossings if item.going]
        for place in places[rows[len(self._crossings) : _CROSSINGS]].tolist():
            self._crossings += begun(place, self.points, self._answers, self._generator)
        kinds[rows[len(self._crossings) :]] = 0
        self._crossed = dict(zip(rows.tolist(), self._crossings, strict=False))
        for row, crossing in self._crossed.items():
            places[row] = crossing.place


# First where the network amplifies changes, then where its two sides differ.


_STARTS = 12


class Conditioning(Mega):
    """MEGA from where one side's answers pass through zero, which is where they're conditioned worst.

    Half of the evaluations look for such passes; they need one side only, and are made before the first candidate.
    """

    def __init__(self, size: int, seed: int, evaluations: int, controls: Sequence[int], answers: Answers) -> None:
        super().__init__(size, seed, evaluations // 2, controls, answers)
        self._drawing = np.random.default_rng(seed)

    def __call__(self, ask: Asking) -> NoReturn:
        """Start near those that amplify most."""
        self.starts = self._passes()
        super().__call__(ask)

    def _passes(self) -> list[Array]:
        points = np.array([self.start() for _ in range(_STARTS)])
        answers, found = [numbers(outputs) for outputs in self._look(points)], list[Crossing]()
        for looks in range(_STARTS, self._evaluations):
            if not (found and found[-1].going):
                found += begun(looks % _STARTS, points, answers, self._drawing)
            if found and found[-1].going:
                point = found[-1].point()
                found[-1].told(point, self._look(point[np.newaxis])[0])
        return [crossing.nearest for crossing in found]

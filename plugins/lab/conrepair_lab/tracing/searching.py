"""Inputs on which two settings differ most, found by a search whose evaluations run both."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from conrepair.formats.models.runnable import Array, Runnable
from conrepair.ground.runtime.errors import InferenceError
from conrepair_lab.tracing.search.methods.all_methods import METHODS
from conrepair_lab.tracing.search.objectives import Objective, Outputs, flip, scored
from conrepair_lab.tracing.search.search import FAILED, run
from conrepair_lab.tracing.search.space import Space

_KEPT = 24


@dataclass(frozen=True, order=True)
class Candidate:
    """Inputs, and how far the sides are apart there.

    Attributes:
        score: Of the objective.
        number: Of the evaluation.
        feeds: By input.
    """

    score: float
    number: int
    feeds: Mapping[str, Array] = field(compare=False)


@dataclass(frozen=True)
class Searched:
    """The result of a search.

    Attributes:
        best: The candidates with the highest scores, the highest first.
        evaluations: That were made.
        failed: Of these, such as a side couldn't be run on.
        seconds: It took.
        history: After how many evaluations the best score rose, and to what.
    """

    best: tuple[Candidate, ...]
    evaluations: int
    failed: int
    seconds: float
    history: tuple[tuple[int, float], ...]


class Sides:
    """Both settings of a model, run on the same inputs.

    Attributes:
        space: What points stand for.
        failed: How often one of them couldn't be run.
        why: What that said, the first time.
    """

    def __init__(self, one: Runnable, two: Runnable, space: Space, objective: Objective) -> None:
        """Take what is opened.

        Args:
            one: The setting in question.
            two: What it's compared with.
            space: What points stand for.
            objective: Scores answers; the higher, the further apart.
        """
        self._one, self._two, self.space, self._objective = one, two, space, objective
        self._best: list[Candidate] = []
        self._last, self._answers = np.zeros((0, 0)), list[Outputs]()
        self._numbers = itertools.count()
        self.failed, self.why = 0, ""

    def evaluate(self, points: Array) -> Array:
        """Scores [count] of points [count, size], one by one: another batch has other kernels."""
        each = self.space.each(points)
        self._last, self._answers = points, []
        far = map(self.space.distance, points, each) if self._objective is flip else itertools.repeat(0.0)
        return np.array(list(map(self.score, each, far)))

    def score(self, feeds: Mapping[str, Array], distance: float = 0.0) -> float:
        """Run both sides, and keep inputs on which they're far apart; how far.

        Args:
            feeds: By input.
            distance: As objectives are told it.
        """
        number = next(self._numbers)
        try:
            one, two = self._one.run(feeds), self._two.run(feeds)
        except InferenceError as error:
            self.failed += 1
            self.why = self.why or str(error)
            self._answers.append([])
            return FAILED
        self._answers.append(answers := list(one.values()))
        score = scored(self._objective, answers, [two[name] for name in one], distance)
        full = len(self._best) >= _KEPT
        if score > (self._best[0].score if full else -np.inf):  # NaN isn't
            own = {name: array.copy() for name, array in feeds.items()}  # else a whole block is kept
            keep = heapq.heappushpop if full else heapq.heappush
            keep(self._best, Candidate(score, number, own))
        return score

    def answers(self, points: Array) -> Sequence[Outputs]:
        """What the setting in question gives for each point, or nothing; where it just was run it isn't again."""
        if points is not self._last:
            self._last, self._answers = points, []
            for feeds in self.space.each(points):
                self._answers.append([])
                with contextlib.suppress(InferenceError):
                    self._answers[-1] = list(self._one.run(feeds).values())
        return self._answers

    @property
    def best(self) -> tuple[Candidate, ...]:
        """The candidates with the highest scores, best first."""
        return tuple(sorted(self._best, reverse=True))


def search_inputs(
    sides: Sides,
    name: str,
    *,
    evaluations: int,
    seconds: float,
    seed: int,
    given: Sequence[Mapping[str, Array]] = (),
    flat: float = np.inf,
) -> Searched:
    """Look for inputs on which both sides differ.

    Args:
        sides: What runs them.
        name: Of the method.
        evaluations: That are made.
        seconds: After which no more are begun.
        seed: Of what's drawn.
        given: Inputs that are scored first.
        flat: Evaluations after which it ends where all scores have been the same.

    Raises:
        InferenceError: if not one evaluation succeeded; with what the system said.
    """
    started = time.perf_counter()
    for feeds in given:
        sides.score(feeds)
    left = max(seconds - (time.perf_counter() - started), 0.0)
    searching = METHODS[name](sides.space, evaluations, seed, sides.answers)
    found = run(searching, sides.evaluate, evaluations, left, flat=flat)
    if not sides.best:
        raise InferenceError(
            f"no input could be run on both sides: {sides.why or 'the time was up before the first one'}"
        )
    return Searched(
        sides.best, found.evaluations + len(given), sides.failed, time.perf_counter() - started, tuple(found.history)
    )

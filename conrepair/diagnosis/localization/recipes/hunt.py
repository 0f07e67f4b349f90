"""Try recipes: their parts in turn on a few photos, around the best again and again, then the best on all photos."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from conrepair.diagnosis.localization.numbers import preparing
from conrepair.diagnosis.localization.recipes.family import (
    affine,
    coarse_fits,
    fits,
    numbers,
    resamplings,
    with_affine,
)
from conrepair.diagnosis.localization.recipes.feeds import Arrangement, Budget, PhotoFeeds, RecipeCandidate, joined
from conrepair.ground.data.pictures.recipe import Recipe
from conrepair.ground.metrics.probabilities import looks_normalized, softmax
from conrepair.ground.metrics.tensors import relative_error
from conrepair.ground.runtime.errors import DataError
from conrepair.verdicts.evaluate.answers import as_scores
from conrepair.verdicts.evaluate.pairing import fit, pair_outputs

_BEAM = 4
_ROUNDS = 4
_PROBES = 2  # photos that a recipe must do well on before it's tried on all
_REFINEMENTS = 2
_CHUNK = 8  # photos that the finalists are tried on at a time, so that each is decoded once
_STEPS = 16
_DIFFERENCE = 1e-2  # of what is varied, for the derivatives: large enough to rise above float32's rounding
_MIDDLE = 127.5  # of the pixels: offsets there hardly depend on factors

_Float64 = npt.NDArray[np.float64]
Array = npt.NDArray[Any]


class RecipeHunt:
    """Recipes that were tried on a few photos.

    Args:
        feeds: Makes and runs feeds.
        judge: Of the answers.
        budget: What it may cost.
        exact: An error that can't get better.

    Attributes:
        cut_off: The budget was spent before the end.
    """

    def __init__(self, feeds: PhotoFeeds, judge: AnswersJudge, budget: Budget, exact: float) -> None:
        self.cut_off = False
        self._feeds = feeds
        self._judge = judge
        self._budget = budget
        self._exact = exact
        self._probes = feeds.photos.telling(_PROBES)
        self._tried: dict[bytes, RecipeCandidate] = {}
        self._began = time.perf_counter()

    def search(self, beginning: Recipe) -> None:
        """Try recipes, from the one given on, until one is right or none gets better."""
        self._try([(beginning, "as it is")])
        [given] = self.best(1)
        # One thing wrong is the rule, and with wrong numbers no way of feeding them looks nearly right.
        self._try_numbers(given)
        self._try_arrangements(given)
        self._go_rounds()
        # Numbers that are right may look wrong while the geometry is: all pairs, roughly.
        for recipe in coarse_fits(given.recipe, self._feeds.size):
            self._try((item, "as it is") for item in numbers(recipe, self._feeds.channels))
        self._go_rounds()
        for _ in range(_REFINEMENTS):
            for candidate in dict.fromkeys([*self.best(1), given]):
                self._refine(candidate)
            # With better numbers another geometry may turn out to be the right one.
            self._try_geometry(1)

    def best(self, count: int) -> list[RecipeCandidate]:
        """The best recipes so far; of equal ones the first tried, which are nearer to the given recipe."""
        return sorted(self._tried.values(), key=lambda candidate: candidate.error)[:count]

    def worst_photo(self, candidate: RecipeCandidate) -> int:
        """The photo on which a recipe does worst."""
        photos = range(len(self._feeds.photos))
        return max(photos, key=lambda photo: self.on([candidate], [photo])[0].error)

    def look_at(self, photo: int) -> bool:
        """Take a photo into those that recipes are tried on, and begin again; False if it's among them."""
        if photo in self._probes:
            return False
        self._probes.append(photo)
        self._tried.clear()
        return True

    def on(self, candidates: Sequence[RecipeCandidate], photos: Sequence[int]) -> list[RecipeCandidate]:
        """Candidates as they do on other photos."""
        parts: list[list[dict[str, Array]]] = [[] for _ in candidates]
        for start in range(0, len(photos), _CHUNK):
            chunk = photos[start : start + _CHUNK]
            for candidate, outputs in zip(candidates, parts, strict=True):
                array = self._feeds.array(candidate.recipe, candidate.arrangement, chunk)
                outputs.append(self._feeds.outputs(array))
        return [
            self._judged(candidate, joined(outputs), photos)
            for candidate, outputs in zip(candidates, parts, strict=True)
        ]

    def _go_rounds(self) -> None:
        """Search in rounds until the best recipe stays the best."""
        for _ in range(_ROUNDS):
            before = self.best(1)
            self._go_round()
            if self.best(1) == before:
                return

    def _go_round(self) -> None:
        """Each part of the best recipes in turn; the numbers first, which do most and cost no resizing."""
        for candidate in self.best(_BEAM // 2):
            self._try_numbers(candidate)
        for candidate in self.best(_BEAM):
            self._try_arrangements(candidate)
        self._try_geometry(_BEAM)

    def _try_geometry(self, beam: int) -> None:
        """Fits, then interpolations, of the best."""
        for family in (lambda recipe: fits(recipe, self._feeds.size), resamplings):
            for candidate in self.best(beam):
                recipes = ((recipe, candidate.arrangement) for recipe in family(candidate.recipe))
                self._try(recipes, fitted=candidate.fitted)

    def _refine(self, candidate: RecipeCandidate) -> None:
        """Vary the numbers freely, for those that have no name."""
        if candidate.error > preparing.FAR:
            return

        def distance(recipe: Recipe) -> _Float64 | None:
            if self._is_settled() or self._is_spent():
                return None
            array = self._feeds.array(recipe, candidate.arrangement, self._probes)
            return self._judge.distance(self._feeds.outputs(array), self._probes)

        refined = refine_numbers(candidate.recipe, distance, channels=self._feeds.channels, enough=self._exact / 10)
        self._try([(refined, candidate.arrangement)], fitted=refined != candidate.recipe)

    def _try_numbers(self, candidate: RecipeCandidate) -> None:
        self._try((recipe, candidate.arrangement) for recipe in numbers(candidate.recipe, self._feeds.channels))

    def _try_arrangements(self, candidate: RecipeCandidate) -> None:
        self._try((candidate.recipe, arrangement) for arrangement in self._feeds.arrangements())

    def _try(self, recipes: Iterable[tuple[Recipe, Arrangement]], *, fitted: bool = False) -> None:
        for recipe, arrangement in recipes:
            if self._is_settled() or self._is_spent():
                return
            array = self._feeds.array(recipe, arrangement, self._probes)
            key = hashlib.blake2b(array.tobytes()).digest()
            if key not in self._tried:
                candidate = RecipeCandidate(recipe, arrangement, fitted=fitted)
                self._tried[key] = self._judged(candidate, self._feeds.outputs(array), self._probes)

    def _judged(
        self, candidate: RecipeCandidate, outputs: dict[str, Array], photos: Sequence[int]
    ) -> RecipeCandidate:
        error, agreement = self._judge.judge(outputs, photos)
        return replace(candidate, error=error, agreement=agreement, photos=len(photos))

    def _is_settled(self) -> bool:
        return any(candidate.error <= self._exact for candidate in self._tried.values())

    def _is_spent(self) -> bool:
        seconds = time.perf_counter() - self._began
        spent = bool(self._tried) and (self._feeds.runs >= self._budget.runs or seconds >= self._budget.seconds)
        self.cut_off = self.cut_off or spent
        return spent


class _EndedError(Exception):
    """Answers are as near as wanted, or there may be no more runs."""


def refine_numbers(
    recipe: Recipe, distance: Callable[[Recipe], _Float64 | None], *, channels: int, enough: float
) -> Recipe:
    """Vary a recipe's factors and offsets, which have no name, so that answers come nearer to the wanted ones.

    A target may subtract any mean. From a recipe that is nearly right, steps by the derivatives of the answers lead
    to the right numbers; far from it, or behind another fault, they lead nowhere, which the error shows.

    Args:
        recipe: Nearly right.
        distance: Runs the target under a recipe and gives its answers less the wanted ones, in units of the
            wanted ones' norm; None where it can't or may not.
        channels: 3, or 1 for grey.
        enough: Norm of the distance at which to stop.

    Returns:
        The best recipe met, maybe the one given.

    Source:
        Branch, Coleman and Li, A Subspace, Interior, and Conjugate Gradient Method for Large-Scale Bound-Constrained
        Minimization Problems, 1999, as SciPy has it; derivatives are taken by running the target.
    """
    factors, offsets = (values[:channels] for values in affine(recipe))
    met: list[tuple[float, Recipe]] = []

    def answers(varied: _Float64) -> _Float64:
        """Of factors, and of the values that a middling pixel becomes, as shares of the recipe's own factors."""
        factor, middle = factors * varied[:channels], offsets + factors * _MIDDLE * varied[channels:]
        tried = with_affine(recipe, recipe.channels, factor, middle - factor * _MIDDLE) if met else recipe
        there = distance(tried)
        if there is None:
            raise _EndedError
        met.append((float(np.linalg.norm(there)), tried))
        if met[-1][0] <= enough:
            raise _EndedError
        return there

    with contextlib.suppress(_EndedError):
        scipy.optimize.least_squares(answers, np.ones(2 * channels), diff_step=_DIFFERENCE, max_nfev=_STEPS)
    return min(met, key=lambda item: item[0])[1] if met else recipe


class AnswersJudge:
    """Measures by the source's answers: relative error, the worst of the outputs.

    Args:
        expected: The source's outputs on all photos, photos first.
    """

    def __init__(self, expected: Mapping[str, Array]) -> None:
        self._expected = expected

    def judge(self, outputs: Mapping[str, Array], photos: Sequence[int]) -> tuple[float, float | None]:
        """Measure the outputs that recipes lead to.

        Args:
            outputs: Of the target, photos first.
            photos: Which photos they belong to.

        Returns:
            The relative error, inf where the answers aren't numbers; and the share of the photos whose best class is
            the wanted one, None where outputs aren't classes.

        Raises:
            DataError: if no output of the target can be compared with one of the source.
        """
        errors, agreement = [], None
        for reference, candidate in self._pairs(outputs, photos):
            errors.append(relative_error(reference, candidate))
            if agreement is None and as_scores(reference) is not None:
                agreement = float(np.mean(reference.argmax(axis=1) == candidate.argmax(axis=1)))
        return max(errors), agreement

    def distance(self, outputs: Mapping[str, Array], photos: Sequence[int]) -> _Float64 | None:
        """Answers less the wanted ones, in units of these; None where they aren't numbers.

        Args:
            outputs: As above.
            photos: As above.
        """
        parts = []
        for reference, candidate in self._pairs(outputs, photos):
            wanted, given = (np.asarray(item, np.float64).reshape(-1) for item in (reference, candidate))
            norm = float(np.linalg.norm(wanted))
            if not norm or not (np.isfinite(wanted).all() and np.isfinite(given).all()):
                return None
            parts.append((given - wanted) / norm)
        return np.concatenate(parts)

    def _pairs(self, outputs: Mapping[str, Array], photos: Sequence[int]) -> list[tuple[Array, Array]]:
        """The source's outputs beside the target's, in one layout."""
        expected = {name: array[list(photos)] for name, array in self._expected.items()}
        pairs, left = pair_outputs(expected, outputs)
        if not pairs:
            raise DataError(f"the converted model's outputs can't be compared with the original's: {left[0]}.")
        return [_alike(*fit(pair, expected[pair.reference], outputs[pair.candidate])) for pair in pairs]


def _alike(reference: Array, candidate: Array) -> tuple[Array, Array]:
    """Both as probabilities where one of them is: a softmax on one side alone is another fault than a recipe's."""
    if as_scores(reference) is None or reference.shape != candidate.shape:
        return reference, candidate
    normalized = looks_normalized(reference), looks_normalized(candidate)
    if normalized == (True, False):
        return reference, softmax(candidate)
    return (softmax(reference), candidate) if normalized == (False, True) else (reference, candidate)

"""Search the family of preprocessing recipes for the one under which a target answers as its source does.

A target's layers may all be right and its answers wrong all the same, because it is fed with other numbers than its
source: another order of the colours, another scale, another way of resizing. The search says which.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

from conrepair.diagnosis.localization.numbers import preparing
from conrepair.diagnosis.localization.recipes.family import numeric_key
from conrepair.diagnosis.localization.recipes.feeds import (
    Budget,
    Photo,
    PhotoFeeds,
    PhotoPixels,
    RecipeCandidate,
    RecipeSearch,
    RunTarget,
)
from conrepair.diagnosis.localization.recipes.hunt import AnswersJudge, RecipeHunt
from conrepair.ground.data.pictures.recipe import Recipe
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import DataError
from conrepair.ground.runtime.words import percent

_COLOURS = {"rgb": "RGB", "bgr": "BGR", "grey": "grey"}


def changes_in_words(before: Recipe, after: Recipe) -> tuple[str, ...]:
    """What one recipe does that another does not, e.g. ("BGR instead of RGB",); empty when they're the same.

    Args:
        before: What is described as "instead of".
        after: The other.
    """
    changes = []
    if before.channels != after.channels:
        changes.append(f"{_COLOURS[after.channels]} instead of {_COLOURS[before.channels]}")
    if numeric_key(before)[1:] != numeric_key(after)[1:]:
        changes.append(f"{numbers_in_words(after)} instead of {numbers_in_words(before)}")
    if _fit_in_words(before) != _fit_in_words(after):
        changes.append(f"{_fit_in_words(after)} instead of {_fit_in_words(before)}")
    if (before.resampler, before.interpolation) != (after.resampler, after.interpolation):
        changes.append(f"{_resampling_in_words(after)} instead of {_resampling_in_words(before)}")
    return tuple(changes)


def recipe_in_words(recipe: Recipe) -> str:
    """A whole recipe in one line."""
    parts = (_fit_in_words(recipe), _resampling_in_words(recipe), _COLOURS[recipe.channels], numbers_in_words(recipe))
    return ", ".join(parts)


def numbers_in_words(recipe: Recipe) -> str:
    """The numeric part as a formula of the pixel x, e.g. "(x / 255 - 0.5) / 0.5"."""
    formula = "x" if recipe.divisor == 1 else f"x / {recipe.divisor:g}"
    scaled = any(value != 1 for value in recipe.std)
    if any(recipe.mean):
        formula += f" - {_values(recipe.mean)}"
        formula = f"({formula})" if scaled else formula
    return f"{formula} / {_values(recipe.std)}" if scaled else formula


def _values(values: tuple[float, ...]) -> str:
    if len(values) == 1:
        return f"{values[0]:.6g}" if values[0] >= 0 else f"({values[0]:.6g})"
    return "[" + ", ".join(f"{value:.6g}" for value in values) + "]"


def _fit_in_words(recipe: Recipe) -> str:
    size = "the model's size" if recipe.size is None else f"{recipe.size[0]} x {recipe.size[1]}"
    if recipe.fit == "crop":
        shorter = f" after resizing the shorter side to {recipe.spatial.resize_to}" if recipe.size else ""
        return f"the centre of {size}{shorter}"
    if recipe.fit == "pad":
        return f"padded with zeros to {size}"
    return f"stretched to {size}" if recipe.fit == "stretch" else "the photo's own size"


def _resampling_in_words(recipe: Recipe) -> str:
    averaging = "averaging" if recipe.resampler == "pillow" and recipe.interpolation != "nearest" else "not averaging"
    library = "Pillow" if recipe.resampler == "pillow" else "TensorFlow"
    return f"{recipe.interpolation} ({library}, {averaging})"


_FINALISTS = 5
_REPETITIONS = 3


def search_recipes(
    run_target: RunTarget,
    expected: Mapping[str, npt.NDArray[Any]],
    photos: Sequence[Photo],
    target_input: TensorSpec,
    *,
    start: Recipe,
    own: Recipe | None = None,
    before: float = math.inf,
    budget: Budget | None = None,
    rounding: float = 1e-4,
) -> RecipeSearch:
    """Find the recipe under which the target reproduces the source's answers.

    The numbers (scale, mean, order of the colours) are tried on a few photos first, then with the best of them the
    geometry and the interpolation, and all again around the best until nothing improves. The best are judged on all
    photos. Recipes that give the same array are run once, and each photo is resized once for each geometry.

    Args:
        run_target: Runs the target on a batch of named feeds.
        expected: The source's outputs on the photos, by its right recipe, photos first.
        photos: Files or pixels, in the order of `expected`.
        target_input: The target's only input.
        start: The recipe that the target has been fed by.
        own: The source's, which is tried first.
        before: Relative error of the target's answers as it's fed now.
        budget: What it may cost.
        rounding: Relative error that counts as none (the floor of the two models, where it was measured).

    Returns:
        The candidates, ranked, with a verdict in words.

    Raises:
        DataError: if a photo can't be read, their number isn't that of `expected`, the input doesn't take photos, or
            outputs can't be compared.
    """
    counts = {len(array) for array in expected.values()}
    if counts != {len(photos)}:
        raise DataError(f"there are {len(photos)} photos, but the original's outputs are of {sorted(counts)}.")
    feeds = PhotoFeeds(run_target, PhotoPixels(photos), target_input, start)
    everything = range(len(feeds.photos))
    beginning = start.for_size(*feeds.size)
    exact = min(rounding, preparing.EXACT)
    hunt = RecipeHunt(feeds, AnswersJudge(expected), budget or Budget(), exact)
    if own is not None and (changes := changes_in_words(start, own)):
        [right] = hunt.on([RecipeCandidate(own.for_size(*feeds.size))], everything)
        if right.error <= rounding:
            evidence = (
                f"the converted model needs the original's recipe: {'; '.join(changes)}; with it the relative error "
                f"falls from {percent(before)} to {percent(right.error)} on {right.photos} photos"
            )
            given = RecipeCandidate(start, error=before, photos=right.photos)
            return RecipeSearch(True, (right,), given, changes, evidence, feeds.runs, complete=True)
    [first] = hunt.on([RecipeCandidate(beginning)], everything)
    if first.error <= rounding:
        return _verdict(first, [first], hunt, feeds.runs, rounding)
    for _ in range(_REPETITIONS):
        hunt.search(beginning)
        finalists = sorted(hunt.on(hunt.best(_FINALISTS), everything), key=lambda candidate: candidate.error)
        misled = hunt.best(1)[0].error <= exact and finalists[0].error > rounding
        # Right on a few photos only, which couldn't tell: one that can is added.
        if not misled or hunt.cut_off or not hunt.look_at(hunt.worst_photo(finalists[0])):
            break
    return _verdict(first, finalists, hunt, feeds.runs, rounding)


def _verdict(
    start: RecipeCandidate, finalists: list[RecipeCandidate], hunt: RecipeHunt, runs: int, rounding: float
) -> RecipeSearch:
    best = finalists[0]
    if start.error <= max(best.error, rounding):
        best = start
    arrangement = (best.arrangement,) if best.arrangement != start.arrangement else ()
    changes = (*changes_in_words(start.recipe, best.recipe), *arrangement)
    others = [item.error for item in finalists if item != best] + ([start.error] if changes else [])
    exact = best.error <= rounding
    clear = best.error <= preparing.CLEAR_ERROR and bool(others) and min(others) >= preparing.CLEAR * best.error
    # What was fitted, or given, comes near for other reasons than being right.
    choice = not best.fitted and bool(changes)
    found = exact or (clear and choice)
    judged = {(item.recipe, item.arrangement) for item in finalists}
    rest = [item for item in hunt.best(1 << 30) if (item.recipe, item.arrangement) not in judged]
    ranked = [best, *(item for item in finalists if item != best), *rest]
    evidence = _evidence(found, start, ranked, changes)
    return RecipeSearch(found, tuple(ranked), start, changes, evidence, runs, not hunt.cut_off)


def _evidence(found: bool, start: RecipeCandidate, ranked: list[RecipeCandidate], changes: tuple[str, ...]) -> str:
    best = ranked[0]
    what = "; ".join(changes) + (" (numbers fitted to the outputs)" if best.fitted else "")
    if not changes and not found:
        return f"no recipe is better than the given one: {_figures(None, best)}"
    if not changes:
        return f"the given recipe is the best of {len(ranked)}: {_figures(None, best)}"
    figures = f"{what}: {_figures(start, best)}"
    if found:
        return figures
    close = [item for item in ranked[1:] if item.error < preparing.CLEAR * best.error and item.photos == best.photos]
    if best.error <= preparing.CLEAR_ERROR and close:
        return (
            f"{figures}; {len(close)} others are nearly as good, as {_in_words(close[0])} ({percent(close[0].error)})"
        )
    return f"no recipe of {len(ranked)} makes the outputs the same; the best is {figures}"


def _in_words(candidate: RecipeCandidate) -> str:
    arrangement = "" if candidate.arrangement == "as it is" else f", {candidate.arrangement}"
    return recipe_in_words(candidate.recipe) + arrangement


def _figures(start: RecipeCandidate | None, best: RecipeCandidate) -> str:
    before = "" if start is None else f"{percent(start.error)} -> "
    text = f"relative error {before}{percent(best.error)} on {best.photos} photos"
    if best.agreement is not None:
        before = "" if start is None or start.agreement is None else f"{percent(start.agreement)} -> "
        text += f", same top-1 prediction {before}{percent(best.agreement)}"
    return text

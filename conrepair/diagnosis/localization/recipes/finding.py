"""The recipe under which a target that is prepared wrongly answers as its source does."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path

from conrepair.diagnosis.localization.numbers import preparing
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.recipes.feeds import Budget, joined
from conrepair.diagnosis.localization.recipes.search import search_recipes
from conrepair.diagnosis.localization.result import RecipeFinding
from conrepair.diagnosis.localization.run.opening import OpenedNetwork, WholeRun
from conrepair.ground.data.feeds import Batch
from conrepair.ground.data.pictures.recipe import Recipe
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.runtime.files.whole import HashedPath


def find_recipe(
    source: OpenedNetwork,
    target: OpenedNetwork,
    batches: Iterable[Batch],
    photos: Sequence[HashedPath],
    recipes: tuple[Recipe, Recipe],
    options: Options,
    *,
    output_error: float,
) -> RecipeFinding:
    """Try the source's recipe on the target, then search all others.

    Args:
        source: The model that is right.
        target: The model in question.
        batches: Of the source, by its own recipe: the photos.
        photos: The same photos as files.
        recipes: By which the source and the target have been fed.
        options: The budget.
        output_error: Of the target's answers as it's fed now: what explains it must leave far less.

    Raises:
        DataError: if a photo can't be read, or the target doesn't take photos.
    """
    expected = _answers(WholeRun(source), batches)
    count = min(len(photos), *(len(array) for array in expected.values()))
    expected = {name: array[:count] for name, array in expected.items()}
    paths = [Path(photo.path) for photo in photos[:count]]
    rounding = max(preparing.ROUNDING, min(options.same, preparing.EXPLAINED * output_error))
    search = search_recipes(
        WholeRun(target),
        expected,
        paths,
        target.inputs[0],
        start=recipes[1],
        own=recipes[0],
        before=output_error,
        budget=Budget(options.recipe_runs, options.recipe_seconds),
        rounding=rounding,
    )
    best = search.best
    return RecipeFinding(
        recipe=dataclasses.asdict(best.recipe),
        arrangement=best.arrangement,
        found=search.found,
        changes=search.changes,
        error=best.error,
        error_before=search.start.error,
        photos=best.photos,
        runs=search.runs,
        complete=search.complete,
        evidence=search.evidence,
    )


def _answers(run: WholeRun, batches: Iterable[Batch]) -> dict[str, Array]:
    return joined([{name: array[: batch.valid] for name, array in run(batch.feeds).items()} for batch in batches])

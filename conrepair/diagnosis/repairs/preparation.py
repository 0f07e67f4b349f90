"""Repair how photos are prepared for a target: another recipe, judged by localization as every edit is."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from conrepair.diagnosis.localization.localize import Found
from conrepair.diagnosis.localization.recipes.search import changes_in_words
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.diagnosis.repairs.bench import Bench
from conrepair.diagnosis.repairs.criteria import sources_of
from conrepair.diagnosis.repairs.edits import SetRecipe
from conrepair.formats.models.model import Model
from conrepair.ground.data.feeds import DataReference
from conrepair.ground.data.pictures.prepare import PhotoPreparation
from conrepair.ground.data.pictures.recipe import Recipe
from conrepair.ground.graph.kinds import OF_INPUTS
from conrepair.ground.runtime.errors import DataError
from conrepair.ground.runtime.words import percent

_AS_IT_IS = "as it is"


@dataclass(frozen=True)
class RecipeRepair:
    """A recipe that puts inputs right.

    Attributes:
        edit: Sets it.
        gain: What that bought, in words.
        found: What localization says of the target that is fed by it.
    """

    edit: SetRecipe
    gain: str
    found: Found


def prepared_wrongly(found: Found) -> bool:
    """Whether an input is at fault."""
    return any(fault.kind in OF_INPUTS for fault in found.result.faults)


def fed_otherwise(source: FedModel, target: FedModel) -> bool:
    """Whether photos are prepared for a target by other numbers, or otherwise cut, than for its source."""
    if source.recipe is None or target.recipe is None:
        return False
    ours = dataclasses.replace(source.recipe, size=target.recipe.size, layout=target.recipe.layout)
    return bool(changes_in_words(target.recipe, ours))


def repair_preparation(
    bench: Bench, source: FedModel, model: Model, before: Found, folder: Path, *, end: float
) -> RecipeRepair | None:
    """Find the recipe by which a target's inputs are right; it's fed by that from then on.

    The source's own recipe is tried first, then the best of a search. Where it can't be told whether the preparation
    is wrong or the layers behind are, a recipe is right if nothing at all is at fault with it.

    Args:
        bench: Judges.
        source: The model that is right.
        model: The target, maybe with some edits.
        before: What localization says of it as it's fed now.
        folder: For photos in another geometry; must stay as long as the bench is used.
        end: Of the time, by `time.monotonic`.

    Returns:
        None where inputs are right, or no recipe fixes them.

    Raises:
        ModelLoadError: if the target can't be opened.
        InferenceError: if it can't be run.
    """
    target = bench.target
    certain, doubtful = prepared_wrongly(before), bool(before.result.faults and before.result.notes)
    if target.recipe is None or source.recipe is None or not (certain or doubtful):
        return None
    best: RecipeRepair | None = None
    fed_best = target
    for place, recipe in enumerate(_candidates(bench, source.recipe, target.recipe, model, before, end)):
        changes = changes_in_words(target.recipe, recipe)
        fed = fed_by(recipe, source, target, folder / f"photos-{place}") if changes else None
        if fed is None:
            continue
        bench.feed(fed)
        again = bench.localize(model)
        fixes = not prepared_wrongly(again) and sources_of(again.guilty) <= sources_of(before.guilty)
        if not again.result.faults or (certain and fixes):
            errors = again.result.output_error, before.result.output_error
            gain = "outputs differ by {}, {} before".format(*map(percent, errors))
            if best is None or not again.result.faults:
                best, fed_best = RecipeRepair(SetRecipe(recipe, changes), gain, again), fed
            # What's at fault behind an input may be right, and another recipe meant: one with part of it inside.
            if not any(piece.region.starts_at_input for piece in again.guilty):
                break
        bench.feed(target)
    bench.feed(fed_best)
    return best


def _candidates(
    bench: Bench, ours: Recipe, theirs: Recipe, model: Model, found: Found, end: float
) -> Iterator[Recipe]:
    # Of the source's recipe, size and order of the axes don't count: they are the target's own.
    yield dataclasses.replace(ours, size=theirs.size, layout=theirs.layout)
    left = end - time.monotonic()
    if not bench.target.photos or left <= 0:
        return
    try:
        best = bench.find_recipe(model, left, output_error=found.result.output_error)
    except DataError:
        return  # a photo that can't be read, or an input of another kind: there's nothing to search by
    if best.arrangement == _AS_IT_IS:
        yield dataclasses.replace(Recipe(**best.recipe), layout=theirs.layout)


def fed_by(recipe: Recipe, source: FedModel, target: FedModel, folder: Path) -> FedModel | None:
    """The target with other photos; None where those can't be had.

    Args:
        recipe: To prepare them by.
        source: The model that is right.
        target: The model in question.
        folder: For photos that neither of them is fed.
    """
    for side in (target, source):
        if side.recipe is not None and side.recipe.spatial == recipe.spatial:
            return dataclasses.replace(target, recipe=recipe, data=side.data)
    if not target.photos:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    photos = [Path(photo.path) for photo in target.photos]
    PhotoPreparation(photos, {recipe.spatial: folder}, lambda _: None).wait()
    return dataclasses.replace(target, recipe=recipe, data=DataReference("photos", len(photos), str(folder)))

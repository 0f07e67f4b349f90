"""The jobs that choose what models are fed: values to draw, and the preparation of pictures between two models."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path

from conrepair.application.jobs.description import of_what_stays
from conrepair.application.jobs.values import LikelyRecipe
from conrepair.formats.models.model import LoadedModel, Model
from conrepair.formats.models.registry import framework
from conrepair.formats.models.runnable import Array, Runnable
from conrepair.formats.networks.synthetic_inputs import ChosenValues, choose_inputs
from conrepair.ground.data.feeds import DataReference, batches, open_feeds
from conrepair.ground.data.pictures.byte_pictures import Preparation, likely_recipes
from conrepair.ground.data.pictures.recipe import Recipe
from conrepair.ground.data.synthetic import SyntheticRange
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.metrics.tensors import relative_error
from conrepair.ground.runtime.errors import DataError
from conrepair.verdicts.evaluate.pairing import fit, pair_outputs

_SAMPLES = 8


@of_what_stays
def draw_inputs(
    folder: Path, source: LoadedModel, made: tuple[LoadedModel, ...], limits: SyntheticRange, count: int, batch: int
) -> ChosenValues:
    """Choose which inputs to draw for a model and what was made of it.

    Args:
        folder: Not used.
        source: The model.
        made: What was made of it.
        limits: What is known of the ranges.
        count: How many samples there will be; 0 where nothing is to be run.
        batch: How many at once.
    """
    return choose_inputs(source, made, limits, count, batch=batch)


def preparation(
    folder: Path, source: Model, target: Model, whole: TensorSpec, reals: TensorSpec, data: DataReference
) -> LikelyRecipe:
    """Find the recipe by which two models' answers are nearest.

    Args:
        folder: Not used.
        source: One of which takes bytes, the other numbers.
        target: The other one.
        whole: The input of bytes.
        reals: The input of numbers.
        data: Samples.
    """
    sides = _Side(source), _Side(target)
    best: tuple[float, Recipe | None] = (math.inf, None)
    for recipe in likely_recipes():
        fed = dataclasses.replace(data, count=min(data.count, _SAMPLES), prepared=Preparation(whole, reals, recipe))
        try:
            error = _apart(*(side.answers(fed) for side in sides))
        except DataError:
            continue
        if error < best[0] or best[1] is None:
            best = error, recipe
    error, found = best
    return LikelyRecipe(found, error if math.isfinite(error) else None)


class _Side:
    """A model, whose answers to the same feeds are computed once."""

    def __init__(self, model: Model) -> None:
        self._runnable: Runnable = framework(model.framework).load(model)
        self._known: dict[bytes, dict[str, Array]] = {}

    def answers(self, data: DataReference) -> Mapping[str, Array]:
        """To the first batch.

        Raises:
            DataError: if the data doesn't fit it.
        """
        feeds = open_feeds(data, self._runnable.inputs, None)
        batch = next(iter(batches(feeds, self._runnable.inputs, _SAMPLES)))
        key = b"".join(array.tobytes() for array in batch.feeds.values())
        if key not in self._known:
            outputs = self._runnable.run(batch.feeds)
            self._known[key] = {name: array[: batch.valid] for name, array in outputs.items() if array.ndim}
        return self._known[key]


def _apart(ours: Mapping[str, Array], theirs: Mapping[str, Array]) -> float:
    """The worst output's relative L2."""
    pairs, _ = pair_outputs(ours, theirs)
    sides = [fit(pair, ours[pair.reference], theirs[pair.candidate]) for pair in pairs]
    return max((relative_error(*side) for side in sides), default=math.inf)

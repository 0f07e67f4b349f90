"""Which preparation of pictures lies between a model that takes bytes and one that takes numbers."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conrepair.data.feeds import DataReference, batches, open_feeds
from conrepair.data.pictures.byte_pictures import Preparation, likely_recipes
from conrepair.data.pictures.recipe import Recipe
from conrepair.data.tensor_spec import TensorSpec
from conrepair.evaluate.pairing import fit, pair_outputs
from conrepair.frameworks.model import Model, from_json
from conrepair.frameworks.registry import framework
from conrepair.frameworks.runnable import Array, Runnable
from conrepair.metrics.tensors import relative_error
from conrepair.runtime.errors import DataError

_SAMPLES = 8


def preparation(payload: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Find the recipe by which two models' answers are nearest.

    Args:
        payload: "source" and "target" (models), "bytes" and "reals" (their inputs), "data".
        folder: Not used.

    Returns:
        "recipe", and the relative L2 "error" that's left with it; "recipe" is None where no recipe can be fed.
    """
    source, target = (_Side(from_json(Model, payload[side])) for side in ("source", "target"))
    whole, reals = (from_json(TensorSpec, payload[side]) for side in ("bytes", "reals"))
    data = from_json(DataReference, payload["data"])
    best: tuple[float, Recipe | None] = (math.inf, None)
    for recipe in likely_recipes():
        fed = dataclasses.replace(data, count=min(data.count, _SAMPLES), prepared=Preparation(whole, reals, recipe))
        try:
            error = _apart(source.answers(fed), target.answers(fed))
        except DataError:
            continue
        if error < best[0] or best[1] is None:
            best = error, recipe
    error, found = best
    told = error if math.isfinite(error) else None
    return {"recipe": None if found is None else dataclasses.asdict(found), "error": told}


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

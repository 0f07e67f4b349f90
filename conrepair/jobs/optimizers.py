"""The job that names the optimization of ONNX Runtime which makes a model give something else."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from conrepair.data.feeds import DataReference, batches, open_feeds
from conrepair.data.pictures.recipe import Recipe
from conrepair.frameworks.model import Model, from_json
from conrepair.metrics.running_error import relative_l2

_RIGHT = 0.1  # of the error with all optimizations, at most, where the wrong one is off


def optimizers(payload: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Name the optimizations that must be off for a model to give what it does without any.

    Args:
        payload: As for `execute`, of which the first batch is run.
        folder: Unused.

    Returns:
        "names"; none where the first batch doesn't show the difference, or no name is known for what makes it.
    """
    from conrepair.frameworks.onnx import OnnxRunnable
    from conrepair.frameworks.onnx_files.optimizers import needed

    model = from_json(Model, payload["model"])
    recipe = None if payload["recipe"] is None else from_json(Recipe, payload["recipe"])
    level = str(payload["options"].get("optimization", "all"))
    plain = OnnxRunnable(model)
    source = open_feeds(from_json(DataReference, payload["data"]), plain.inputs, recipe)
    feeds = next(iter(batches(source, plain.inputs, payload["batch_size"]))).feeds
    right = plain.run(feeds)

    def error(without: Collection[str]) -> float:
        given = OnnxRunnable(model, level, without).run(feeds)
        return max((_error(array, given[name]) for name, array in right.items()), default=0.0)

    most = _RIGHT * error(())
    return {"names": list(needed(lambda without: error(without) <= most)) if most else []}


def _error(one: Any, two: Any) -> float:
    return relative_l2(one, two) if one.shape == two.shape else float("inf")

"""The job that names the optimization of ONNX Runtime which makes a model give something else."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from conrepair.application.jobs.values import RunRequest
from conrepair.formats.models.model import Model
from conrepair.formats.onnx.load.framework import OnnxRunnable
from conrepair.formats.onnx.load.optimizers import OPTIMIZERS
from conrepair.ground.data.feeds import batches, open_feeds
from conrepair.ground.metrics.running_error import relative_l2
from conrepair.ground.runtime.bisection import fewest_that_heal

_SESSIONS = 60  # that are opened: one optimization takes twelve
_RIGHT = 0.1  # of the error with all optimizations, at most, where the wrong one is off


def optimizers(folder: Path, model: Model, request: RunRequest) -> tuple[str, ...]:
    """Name the optimizations that must be off for a model to give what it does without any.

    Args:
        folder: Not used.
        model: That is run.
        request: Of the execution, of which the first batch is run.

    Returns:
        None where the first batch doesn't show the difference, or no name is known for what makes it.
    """
    level = str(request.options.get("optimization", "all"))
    plain = OnnxRunnable(model)
    source = open_feeds(request.data, plain.inputs, request.recipe)
    feeds = next(iter(batches(source, plain.inputs, request.batch_size))).feeds
    right = plain.run(feeds)

    def error(without: Collection[str]) -> float:
        given = OnnxRunnable(model, level, without).run(feeds)
        return max((_error(array, given[name]) for name, array in right.items()), default=0.0)

    most = _RIGHT * error(())
    if not most:
        return ()
    found = fewest_that_heal(OPTIMIZERS, lambda without: error(without) <= most, _SESSIONS)
    return tuple(OPTIMIZERS[place] for place in found.places)


def _error(one: Any, two: Any) -> float:
    return relative_l2(one, two) if one.shape == two.shape else float("inf")

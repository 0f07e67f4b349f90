"""What in a model's file holds it to one number of samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from conrepair.data.feeds import DataReference
from conrepair.data.pictures.recipe import Recipe
from conrepair.frameworks.model import Model, from_json
from conrepair.frameworks.registry import framework

__all__ = ["baked"]


def baked(payload: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Find it, in a model that leaves its batch open and fails with some.

    Args:
        payload: As of an execution.
        folder: Not used.

    Returns:
        "words"; "" where it isn't found.
    """
    from conrepair.localization.baked_batch import baked_batch
    from conrepair.localization.fed_model import FedModel, concrete

    model, data = from_json(Model, payload["model"]), from_json(DataReference, payload["data"])
    recipe = None if payload["recipe"] is None else from_json(Recipe, payload["recipe"])
    subject = FedModel(model, framework(model.framework).load(model).inputs, data, recipe)
    found = baked_batch(model, concrete(subject, 1), subject.axes)
    return {"words": "" if found is None else str(found)}

"""A recipe in a file of its own, in the words of a configuration."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from conrepair.data.pictures.recipe import Recipe

__all__ = ["recipe_fields", "write_recipe"]

_BASE = "raw"


def recipe_fields(recipe: Recipe) -> dict[str, Any]:
    """The fields of a recipe, as `recipe` of a model in a configuration takes them.

    Args:
        recipe: Any.
    """
    fields = {name: value for name, value in dataclasses.asdict(recipe).items() if value is not None}
    return {"base": _BASE} | {
        name: list(value) if isinstance(value, tuple) else value for name, value in fields.items() if name != "name"
    }


def write_recipe(recipe: Recipe, path: Path) -> None:
    """Write a recipe so that `--target-recipe FILE` and a configuration take it.

    Args:
        recipe: Any.
        path: Of the JSON file.
    """
    path.write_text(json.dumps(recipe_fields(recipe), indent=2) + "\n", encoding="utf-8")

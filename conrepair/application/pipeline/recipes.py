"""Which preprocessing a model gets: what a verb or the configuration says, else its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conrepair.application.pipeline.datasets import Dataset
from conrepair.ground.data.pictures.named_recipes import named_recipe
from conrepair.ground.data.pictures.recipe import Recipe
from conrepair.ground.runtime.errors import ConfigError
from conrepair.ground.runtime.files.json_file import read_json_text, value_of
from conrepair.ground.zoo.catalog import MODELS

if TYPE_CHECKING:
    from conrepair.application.config.model import ModelConfig, RecipeConfig

_KERAS_FAMILIES = (
    # The longest matching beginning decides; from each application's preprocess_input.
    ("keras:tf", ("Inception", "MobileNet", "NASNet", "Xception")),
    ("keras:tf", tuple(f"ResNet{depth}V2" for depth in (50, 101, 152))),
    ("keras:caffe", ("ResNet", "VGG")),
    ("keras:torch", ("DenseNet",)),
    ("raw", ("ConvNeXt", "EfficientNet", "MobileNetV3")),
)


def recipe_from_config(config: RecipeConfig) -> Recipe:
    """A named recipe with the given fields replaced.

    Raises:
        ConfigError: if a value isn't allowed.
        DataError: if there's no such recipe.
    """
    base = named_recipe(config.base)
    changes = {name: value for name, value in config.model_dump(exclude={"base"}).items() if value is not None}
    if not changes:
        return base
    try:
        return dataclasses.replace(base, name=f"{config.base} (changed)", **changes)
    except ValueError as error:
        raise ConfigError(f"recipe: {error}") from error


def default_recipe(model: ModelConfig) -> tuple[Recipe, bool]:
    """The recipe of a model whose configuration has none, and whether it is the model's own.

    Returns:
        For a zoo model the one it was trained with; for a factory of torchvision or keras.applications that
        library's; else raw pixels, which nobody said are right.
    """
    if model.zoo is not None and model.zoo in MODELS:
        return named_recipe(MODELS[model.zoo].recipe), True
    module, _, name = (model.factory or "").partition(":")
    if module.startswith("torchvision"):
        return named_recipe("torchvision"), True
    if module.startswith("keras.applications"):
        matches = [
            (len(prefix), recipe)
            for recipe, prefixes in _KERAS_FAMILIES
            for prefix in prefixes
            if name.startswith(prefix)
        ]
        if matches:
            return named_recipe(max(matches)[1]), True
    return named_recipe("raw"), False


def recipe_of(value: str | Path | Mapping[str, Any] | Recipe | None) -> Recipe | None:
    """A recipe as it's given: by its name, the path of a JSON file, or its fields.

    Raises:
        ConfigError: if a file can't be read, or a field isn't known.
        DataError: if there's no recipe of that name.
    """
    if value is None or isinstance(value, Recipe):
        return value
    if isinstance(value, str | Path) and not str(value).endswith(".json"):
        return named_recipe(str(value))
    from conrepair.application.config.load import read_recipe

    fields = _read_recipe(value) if isinstance(value, str | Path) else dict(value)
    return named_recipe(fields) if isinstance(fields, str) else recipe_from_config(read_recipe(fields))


def _read_recipe(path: str | Path) -> Any:
    try:
        return value_of(read_json_text(Path(path)))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} can't be read as a recipe: {error}. Give a recipe.json, or a name.") from error


def fitting_recipe(dataset: Dataset, recipe: Recipe | None) -> Recipe | None:
    """How a dataset's samples become tensors: raw pixels where nobody said it.

    Args:
        dataset: That a model runs on.
        recipe: That was given.

    Returns:
        None where samples are tensors already.
    """
    return (recipe or named_recipe("raw")) if dataset.kind == "photos" else None

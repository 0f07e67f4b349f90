"""Which preprocessing the older tool chose for a model: by its library, else by a part of its name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from conrepair.application.config.older import KeyOutcome
from conrepair_legacy.account import Account
from conrepair_legacy.origins import CannotDoError

Recipe = str | dict[str, Any]

# What each module of keras.applications has as preprocess_input; the first that fits counts.
_KERAS = (
    (r"mobilenet_?v3|efficientnet|convnext", "raw"),
    (r"mobilenet|inception|xception|nasnet|resnet\d*_?v2", "keras:tf"),
    (r"densenet", "keras:torch"),
    (r"resnet|vgg", "keras:caffe"),
)
_BGR_MEANS = {"base": "raw", "channels": "bgr", "mean": [103.939, 116.779, 123.68]}
_VGG = {"base": "raw", "fit": "crop", "resize_to": 256, "mean": [123.68, 116.779, 103.939]}
_IMAGENET = {"base": "keras:torch", "interpolation": "bilinear"}
_AROUND_ZERO = {"base": "keras:tf", "interpolation": "bilinear"}
_BY_NAME: tuple[tuple[str, dict[str, Any]], ...] = (
    (r"googlenet", _BGR_MEANS),
    (r"densenet", _VGG),
    (r"mobilenet|shufflenet", _IMAGENET),
    (r"inception_?v3|resnet", _AROUND_ZERO),
)


def recipe_of(library: str, name: str, *, enabled: bool) -> Recipe:
    """The recipe in our form.

    Args:
        library: What loads the model; of "x_to_y", x counts.
        name: What the older tool called `model_name`.
        enabled: Whether photos were prepared at all.

    Raises:
        CannotDoError: if it was that of a module that isn't one of keras.applications.
    """
    if not enabled:
        return "raw"
    library, name = library.partition("_to_")[0].lower(), name.lower()
    if library.startswith("keras") or name.startswith(("keras.", "tensorflow.keras.", "tf.keras.")):
        return _keras(name)
    if library.startswith("torch") or name.startswith("torchvision"):
        return "torchvision"
    return next((dict(recipe) for pattern, recipe in _BY_NAME if re.search(pattern, name)), "raw")


def recipe_words(recipe: Recipe) -> str:
    """What an account calls a recipe."""
    return f"recipe {recipe}" if isinstance(recipe, str) else f"recipe {recipe['base']}, changed"


def sized(recipe: Recipe, image: tuple[int, int] | None, shape: Sequence[Any] | None) -> Recipe:
    """A recipe with the size of pictures, where the model's input doesn't say the same.

    Args:
        recipe: In our form.
        image: Width and height.
        shape: Of the input.
    """
    if image is None:
        return recipe
    size = [image[1], image[0]]
    sizes = list(shape or ())
    if size in (sizes[1:3], sizes[2:4]):
        return recipe
    return ({"base": recipe} if isinstance(recipe, str) else recipe) | {"size": size}


def account_for_size(account: Account, path: str, given: BaseModel, recipe: Recipe) -> None:
    """Say what becomes of an object's size of pictures.

    Args:
        account: Of the translation.
        path: Of the object.
        given: The object.
        recipe: From `sized`.
    """
    if isinstance(recipe, dict) and "size" in recipe:
        account.keys(path, given, {"image_dimension": "the recipe's size"}, KeyOutcome.TRANSLATED)
    else:
        account.keys(path, given, {"image_dimension": "the input says the same"})


def _keras(name: str) -> str:
    tail = name.partition("applications.")[2] or name
    for pattern, recipe in _KERAS:
        if re.search(pattern, tail):
            return recipe
    raise CannotDoError(
        f"the preprocessing was preprocess_input of '{name}', which is no known module of keras.applications; "
        'pixels are given as they are. In the new form say which: "recipe": "keras:tf", ...'
    )

"""The recipes that have a name: what the frameworks' own image classifiers are fed with."""

from __future__ import annotations

import types
from collections.abc import Mapping

from conrepair.ground.data.pictures.recipe import Recipe
from conrepair.ground.runtime.errors import DataError
from conrepair.ground.runtime.words import meant

_IMAGENET_MEAN = (0.485, 0.456, 0.406)
_IMAGENET_STD = (0.229, 0.224, 0.225)

_ALL = (
    # torchvision.transforms._presets.ImageClassification on a PIL image, by default 256 and 224.
    Recipe(
        name="torchvision",
        fit="crop",
        interpolation="bilinear",
        divisor=255.0,
        mean=_IMAGENET_MEAN,
        std=_IMAGENET_STD,
    ),
    # keras.utils.load_img(path, target_size=...), whose default interpolation is nearest, then
    # keras.applications.imagenet_utils.preprocess_input(mode=...).
    Recipe(name="keras:tf", interpolation="nearest", divisor=127.5, mean=(1.0,)),
    Recipe(name="keras:torch", interpolation="nearest", divisor=255.0, mean=_IMAGENET_MEAN, std=_IMAGENET_STD),
    Recipe(name="keras:caffe", interpolation="nearest", channels="bgr", mean=(103.939, 116.779, 123.68)),
    # The normalisation of TensorFlow Lite's image classification examples, and of its Support
    # Library's ResizeOp(BILINEAR) and NormalizeOp(127.5, 127.5).
    Recipe(name="tflite", resampler="tensorflow", mean=(127.5,), std=(127.5,)),
    # The numbers as they are, for models that normalise within.
    Recipe(name="raw"),
    Recipe(name="efficientnet-lite", fit="crop", interpolation="bicubic", mean=(127.0,), std=(128.0,)),
)

RECIPES: Mapping[str, Recipe] = types.MappingProxyType({recipe.name: recipe for recipe in _ALL})


def named_recipe(name: str) -> Recipe:
    """Returns the recipe of a name.

    Args:
        name: One of the keys of `RECIPES`.

    Raises:
        DataError: There is no such recipe; the message suggests the closest, or lists them.
    """
    try:
        return RECIPES[name]
    except KeyError:
        hint = meant(name, RECIPES, f"use one of {', '.join(RECIPES)}, or declare your own in the configuration")
        raise DataError(f"there is no preprocessing recipe named {name!r}{hint}") from None

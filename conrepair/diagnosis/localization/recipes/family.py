"""The family of recipes that a search goes through: numbers, fits and interpolations, and their names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from conrepair.ground.data.pictures.named_recipes import RECIPES
from conrepair.ground.data.pictures.recipe import Channels, Interpolation, Recipe, Resampler

Vector = npt.NDArray[np.float64]

_IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
_CLIP = ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
_CAFFE = (123.68, 116.779, 103.939)  # in the order RGB
_CAFFE_ROUNDED = (123.0, 117.0, 104.0)

# Divisor, mean, std. What the libraries' own models and the usual deployment tools ask for.
_SCALINGS: tuple[tuple[float, tuple[float, ...], tuple[float, ...]], ...] = (
    (1.0, (0.0,), (1.0,)),  # as they are
    (255.0, (0.0,), (1.0,)),  # 0 to 1
    (127.5, (1.0,), (1.0,)),  # -1 to 1
    (1.0, (127.0,), (128.0,)),  # EfficientNet-Lite
    (1.0, (128.0,), (128.0,)),
    (1.0, (128.0,), (1.0,)),  # the bytes of a quantized model, taken as int8
    (256.0, (0.0,), (1.0,)),
    (255.0, *_IMAGENET),  # torchvision
    (255.0, _IMAGENET[0], (1.0,)),  # the deviation forgotten
    (255.0, (0.0,), _IMAGENET[1]),  # the mean forgotten
    (1.0, *_IMAGENET),  # the division by 255 forgotten
    (255.0, *_CLIP),
    (1.0, _CAFFE, (1.0,)),
    (255.0, _CAFFE, (1.0,)),
    (1.0, _CAFFE_ROUNDED, (1.0,)),
    (1.0, _CAFFE, (1 / 0.017,)),  # MobileNet of Caffe
    (255.0, (0.5,), (1.0,)),
    (255.0 * 255.0, (0.0,), (1.0,)),  # divided twice
    (255.0 * 255.0, *_IMAGENET),
    (255.0 * 127.5, (1.0,), (1.0,)),
)

# What a target may do to numbers that are right already, or leave out: x becomes factor * x + offset.
_AGAIN = ((255.0, 0.0), (1 / 255.0, 0.0), (2.0, -1.0), (0.5, 0.5), (127.5, 127.5), (1 / 127.5, -1.0), (-1.0, 0.0))

# The shorter side before the cut, as a multiple of the side that is cut out: 256, 232, 249, 242, 236, 235, 230 and
# 224 for 224 (torchvision's weights, timm's crop_pct), 342 and 320 for 299.
_RATIOS = (
    256 / 224, 232 / 224, 1 / 0.9, 242 / 224, 246 / 224, 238 / 224, 236 / 224, 1 / 0.95, 230 / 224, 1.0, 342 / 299,
    255 / 224, 248 / 224, 1 / 0.96, 1 / 0.965, 320 / 300, 260 / 256,
)  # fmt: skip

_RESAMPLINGS: tuple[tuple[Resampler, Interpolation], ...] = (
    ("pillow", "bilinear"),
    ("pillow", "bicubic"),
    ("pillow", "nearest"),
    ("pillow", "lanczos"),
    ("pillow", "box"),
    ("pillow", "hamming"),
    ("tensorflow", "bilinear"),
    ("tensorflow", "nearest"),
)


def numbers(base: Recipe, channels: int) -> list[Recipe]:
    """A recipe with every numeric part of the family: order of the colours, scale, mean and deviation.

    Besides the usual ones there are those that follow from the recipe by one step left out or done twice: its
    numbers times 255, halved and moved from [-1, 1] to [0, 1], normalised once more, and their opposites.

    Args:
        base: Gives the geometric part; itself the first of the result.
        channels: Of the model's input: 3, or 1 for grey.
    """
    found = {numeric_key(base): base} if _takes(base, channels) else {}
    for recipe in (*_usual(base, channels), *_done_again(base, channels)):
        found.setdefault(numeric_key(recipe), recipe)
    return list(found.values())


def fits(base: Recipe, size: tuple[int, int]) -> list[Recipe]:
    """A recipe with every way of the family in which a photo gets a size: stretched, cropped, padded.

    Args:
        base: Gives the rest; itself the first of the result.
        size: Height and width.
    """
    crops = (replace(base, size=size, fit="crop", resize_to=round(ratio * min(size))) for ratio in _RATIOS)
    recipes = [replace(base, size=size), *_uncut(base, size), *crops]
    return list({recipe.spatial: recipe for recipe in reversed(recipes)}.values())[::-1]


def _uncut(base: Recipe, size: tuple[int, int]) -> list[Recipe]:
    whole = replace(base, size=size, resize_to=None)
    return [replace(whole, fit="stretch"), replace(whole, fit="pad")]


def coarse_fits(base: Recipe, size: tuple[int, int]) -> list[Recipe]:
    """The fits that differ much: stretched, padded, the centre of the whole shorter side, and of 7/8 of it."""
    crop = replace(base, size=size, fit="crop", resize_to=None)
    return [*_uncut(base, size), replace(crop, crop_ratio=1.0), replace(crop, crop_ratio=0.875)]


def resamplings(base: Recipe) -> list[Recipe]:
    """A recipe with every interpolation of the family, with and without averaging."""
    recipes = [
        base,
        *(
            replace(base, resampler=resampler, interpolation=interpolation)
            for resampler, interpolation in _RESAMPLINGS
        ),
    ]
    return list(dict.fromkeys(recipes))


def numeric_key(recipe: Recipe) -> tuple[object, ...]:
    """What the numeric part computes, to six digits: equal for (x / 255 - 0.5) / 0.5 and x / 127.5 - 1."""
    factors, offsets = affine(recipe)
    return recipe.channels, tuple(f"{value:.6g}" for value in (*factors, *(offsets + 1e-12)))


def affine(recipe: Recipe) -> tuple[Vector, Vector]:
    """The numeric part as factor * x + offset, three of each, in the recipe's order of channels."""
    mean, std = (np.resize(np.array(values, dtype=np.float64), 3) for values in (recipe.mean, recipe.std))
    return 1 / (recipe.divisor * std), -mean / std


def _usual(base: Recipe, channels: int) -> Iterator[Recipe]:
    """The named recipes' numbers and the usual scalings, the values per channel in either order."""
    scalings = [(recipe.divisor, recipe.mean, recipe.std) for recipe in RECIPES.values()]
    for divisor, mean, std in (*scalings, *_SCALINGS):
        single = len(mean) == len(std) == 1
        if channels == 1 and not single:
            continue
        for order in _orders(channels):
            for step in (1,) if single else (1, -1):
                yield replace(base, channels=order, divisor=divisor, mean=mean[::step], std=std[::step])


def _done_again(base: Recipe, channels: int) -> Iterator[Recipe]:
    """The base's numbers with a step that the target does again or leaves out."""
    factors, offsets = affine(base)
    steps = [(np.full(3, factor), np.full(3, offset)) for factor, offset in _AGAIN]
    if channels == 3:
        mean, std = (np.array(values) for values in _IMAGENET)
        steps += [(1 / std, -mean / std), (std, mean), (np.ones(3), -mean), (np.ones(3), mean)]
    for order in _orders(channels):
        turned = -1 if order != base.channels else 1
        if channels == 3 or len(base.mean) == len(base.std) == 1:
            yield with_affine(base, order, factors[::turned], offsets[::turned])
            for factor, offset in steps:
                yield with_affine(base, order, (factor * factors)[::turned], (factor * offsets + offset)[::turned])


def with_affine(base: Recipe, order: Channels, factors: Vector, offsets: Vector) -> Recipe:
    """The recipe that computes factor * x + offset, given for each channel in the order wanted."""
    mean, std = (_shortest(values) for values in (-offsets / factors, 1 / factors))
    return replace(base, channels=order, divisor=1.0, mean=mean, std=std)


def _shortest(values: Vector) -> tuple[float, ...]:
    """One number where all are the same."""
    listed = tuple(float(value) for value in values)
    return listed[:1] if len(set(listed)) == 1 else listed


def _takes(recipe: Recipe, channels: int) -> bool:
    return (recipe.channels == "grey") == (channels == 1)


def _orders(channels: int) -> tuple[Channels, ...]:
    return ("grey",) if channels == 1 else ("rgb", "bgr")

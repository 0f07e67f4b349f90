"""Pictures that one model takes as bytes and another as numbers made of them: the numeric part of a recipe apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from conrepair.ground.data.binding import image_layout
from conrepair.ground.data.pictures.named_recipes import RECIPES
from conrepair.ground.data.pictures.recipe import Recipe, apply_numeric
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import DataError

_BYTE = "uint8"
_OFF_GRID = 0.02  # of a byte: single precision leaves a thousandth
_PORTIONS = Recipe(name="portions of 1", divisor=255.0)


@dataclass(frozen=True)
class Preparation:
    """What lies between the inputs of two models.

    Attributes:
        bytes: The input that takes bytes, as its model has it.
        reals: The one that takes numbers made of them.
        recipe: By its numeric part.
    """

    bytes: TensorSpec
    reals: TensorSpec
    recipe: Recipe


def taken_apart(one: Sequence[TensorSpec], two: Sequence[TensorSpec]) -> tuple[TensorSpec, TensorSpec] | None:
    """Inputs of two models that take pictures of one size, as bytes and as numbers.

    Args:
        one: Inputs of a model.
        two: Of another.

    Returns:
        The one of bytes first; None where they don't differ so.
    """
    if len(one) != 1 or len(two) != 1:
        return None
    sides = sorted((one[0], two[0]), key=lambda spec: spec.dtype != _BYTE)
    whole, reals = sides
    if whole.dtype != _BYTE or whole.quantization is not None or not reals.is_float:
        return None
    shapes = [_channels_last(spec) for spec in sides]
    if None in shapes or shapes[0] is None or shapes[0][1:] != (shapes[1] or ())[1:] or shapes[0][-1] != 3:
        return None
    return whole, reals


def likely_recipes() -> list[Recipe]:
    """Numeric parts of recipes, each once and with the colours in either order, the commonest first."""
    found: dict[tuple[object, ...], Recipe] = {}
    for recipe in (RECIPES["torchvision"], _PORTIONS, RECIPES["keras:tf"], *RECIPES.values()):
        for channels in (recipe.channels, "bgr" if recipe.channels == "rgb" else "rgb"):
            named = recipe if channels == recipe.channels else replace(recipe, name=f"{recipe.name}, {channels}")
            known = replace(named, channels=channels)
            found.setdefault((channels, known.divisor, known.mean, known.std), known)
    return sorted(found.values(), key=lambda item: "," in item.name)


def in_words(recipe: Recipe) -> str:
    """A recipe's numeric part, for a person.

    Args:
        recipe: Any.
    """
    steps = [f"/ {recipe.divisor:g}"] if recipe.divisor != 1 else []
    steps += [f"- {_listing(recipe.mean)}"] if any(recipe.mean) else []
    steps += [f"/ {_listing(recipe.std)}"] if set(recipe.std) != {1.0} else []
    order = "" if recipe.channels == "rgb" else f", colours in the order {recipe.channels}"
    return f"`{recipe.name}` (bytes {' '.join(steps) or 'as they are'}{order})"


def to_reals(recipe: Recipe, rows: npt.NDArray[np.uint8], spec: TensorSpec) -> npt.NDArray[np.float32]:
    """Bytes as the other model takes them.

    Args:
        recipe: Between both.
        rows: [N, height, width, 3].
        spec: Of the input.
    """
    return apply_numeric(recipe, rows, "NCHW" if image_layout(spec) == "NCHW" else "NHWC")


def to_bytes(recipe: Recipe, rows: npt.NDArray[np.floating[npt.NBitBase]], spec: TensorSpec) -> npt.NDArray[np.uint8]:
    """The bytes that numbers were made of.

    Args:
        recipe: Between both.
        rows: [N, height, width, 3].
        spec: Of the input that takes them.

    Raises:
        DataError: if they weren't made of bytes so.
    """
    exact = (np.asarray(rows, np.float64) * np.array(recipe.std) + np.array(recipe.mean)) * recipe.divisor
    whole = np.rint(exact)
    in_range = whole.min(initial=0.0) >= 0 and whole.max(initial=0.0) <= np.iinfo(np.uint8).max
    if not in_range or np.abs(exact - whole).max(initial=0.0) > _OFF_GRID:
        raise DataError(
            f"input {spec} takes bytes, and the data aren't made of such by {in_words(recipe)}. Give bytes."
        )
    found = whole.astype(np.uint8)
    found = found[..., ::-1] if recipe.channels == "bgr" else found
    return np.ascontiguousarray(found.transpose(0, 3, 1, 2) if image_layout(spec) == "NCHW" else found)


def channels_last(spec: TensorSpec) -> TensorSpec:
    """An input with its channels behind the picture.

    Args:
        spec: Of pictures.
    """
    return replace(spec, shape=_channels_last(spec) or spec.shape, layout="NHWC")


def _channels_last(spec: TensorSpec) -> tuple[int | str, ...] | None:
    layout = image_layout(spec)
    if layout is None:
        return None
    batch, *rest = spec.shape
    return (batch, *rest[1:], rest[0]) if layout == "NCHW" else spec.shape


def _listing(numbers: Sequence[float]) -> str:
    shown = ", ".join(f"{number:g}" for number in numbers)
    return f"({shown})" if len(numbers) > 1 else shown

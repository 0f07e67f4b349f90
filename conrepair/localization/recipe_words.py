"""What distinguishes two recipes, in words."""

from __future__ import annotations

from conrepair.data.pictures.recipe import Recipe
from conrepair.localization.recipe_family import numeric_key

_COLOURS = {"rgb": "RGB", "bgr": "BGR", "grey": "grey"}


def changes_in_words(before: Recipe, after: Recipe) -> tuple[str, ...]:
    """What one recipe does that another does not, e.g. ("BGR instead of RGB",); empty when they're the same.

    Args:
        before: What is described as "instead of".
        after: The other.
    """
    changes = []
    if before.channels != after.channels:
        changes.append(f"{_COLOURS[after.channels]} instead of {_COLOURS[before.channels]}")
    if numeric_key(before)[1:] != numeric_key(after)[1:]:
        changes.append(f"{numbers_in_words(after)} instead of {numbers_in_words(before)}")
    if _fit_in_words(before) != _fit_in_words(after):
        changes.append(f"{_fit_in_words(after)} instead of {_fit_in_words(before)}")
    if (before.resampler, before.interpolation) != (after.resampler, after.interpolation):
        changes.append(f"{_resampling_in_words(after)} instead of {_resampling_in_words(before)}")
    return tuple(changes)


def recipe_in_words(recipe: Recipe) -> str:
    """A whole recipe in one line."""
    parts = (_fit_in_words(recipe), _resampling_in_words(recipe), _COLOURS[recipe.channels], numbers_in_words(recipe))
    return ", ".join(parts)


def numbers_in_words(recipe: Recipe) -> str:
    """The numeric part as a formula of the pixel x, e.g. "(x / 255 - 0.5) / 0.5"."""
    formula = "x" if recipe.divisor == 1 else f"x / {recipe.divisor:g}"
    scaled = any(value != 1 for value in recipe.std)
    if any(recipe.mean):
        formula += f" - {_values(recipe.mean)}"
        formula = f"({formula})" if scaled else formula
    return f"{formula} / {_values(recipe.std)}" if scaled else formula


def _values(values: tuple[float, ...]) -> str:
    if len(values) == 1:
        return f"{values[0]:.6g}" if values[0] >= 0 else f"({values[0]:.6g})"
    return "[" + ", ".join(f"{value:.6g}" for value in values) + "]"


def _fit_in_words(recipe: Recipe) -> str:
    size = "the model's size" if recipe.size is None else f"{recipe.size[0]} x {recipe.size[1]}"
    if recipe.fit == "crop":
        shorter = f" after resizing the shorter side to {recipe.spatial.resize_to}" if recipe.size else ""
        return f"the centre of {size}{shorter}"
    if recipe.fit == "pad":
        return f"padded with zeros to {size}"
    return f"stretched to {size}" if recipe.fit == "stretch" else "the photo's own size"


def _resampling_in_words(recipe: Recipe) -> str:
    averaging = "averaging" if recipe.resampler == "pillow" and recipe.interpolation != "nearest" else "not averaging"
    library = "Pillow" if recipe.resampler == "pillow" else "TensorFlow"
    return f"{recipe.interpolation} ({library}, {averaging})"

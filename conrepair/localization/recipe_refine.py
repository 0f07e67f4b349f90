"""Numbers of no name: the factors and offsets under which answers agree, by least squares on the answers.

A target may subtract any mean. From a recipe that is nearly right, Gauss and Newton's steps lead to the right
numbers, with derivatives taken by running the target; far from it, or behind another fault, they lead nowhere, which
the error shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from conrepair.data.pictures.recipe import Recipe
from conrepair.localization.recipe_family import affine, with_affine

__all__ = ["refine_numbers"]

_Float64 = npt.NDArray[np.float64]

_STEPS = 8
_HALVINGS = 3
_DIFFERENCE = 1e-2  # of what is varied, for the derivatives: large enough to rise above float32's rounding
_MIDDLE = 127.5  # of the pixels: offsets there hardly depend on factors


def refine_numbers(
    recipe: Recipe, distance: Callable[[Recipe], _Float64 | None], *, channels: int, enough: float
) -> Recipe:
    """Vary a recipe's factors and offsets so that answers come nearer to the wanted ones.

    Args:
        recipe: Nearly right.
        distance: Runs the target under a recipe and gives its answers less the wanted ones, in units of the
            wanted ones' norm; None where it can't or may not.
        channels: 3, or 1 for grey.
        enough: Norm of the distance at which to stop.

    Returns:
        The best recipe met, maybe the one given.

    Source:
        Gauss-Newton with halved steps; Nocedal and Wright, Numerical Optimization, chapter 10.
    """
    values, answers = _parameters(recipe, channels), distance(recipe)
    best = recipe
    for _ in range(_STEPS):
        if answers is None or np.linalg.norm(answers) <= enough:
            return best
        slopes = _slopes(best, values, answers, distance, channels)
        if slopes is None:
            return best
        step = np.linalg.lstsq(slopes, -answers, rcond=1e-6)[0]
        for _ in range(_HALVINGS + 1):
            tried = _with_parameters(recipe, values + step)
            there = distance(tried)
            if there is not None and np.linalg.norm(there) < 0.9 * np.linalg.norm(answers):
                values, answers, best = values + step, there, tried
                break
            step = step / 2
        else:
            return best
    return best


def _slopes(
    recipe: Recipe,
    values: _Float64,
    answers: _Float64,
    distance: Callable[[Recipe], _Float64 | None],
    channels: int,
) -> _Float64 | None:
    """The derivatives of the answers [answers, parameters]; None when runs are spent."""
    factors = np.abs(values[:channels])
    widths = _DIFFERENCE * np.concatenate([factors, factors * _MIDDLE])
    columns: list[_Float64] = []
    for place, width in enumerate(widths):
        moved = values.copy()
        moved[place] += width
        there = distance(_with_parameters(recipe, moved))
        if there is None:
            return None
        columns.append((there - answers) / width)
    return np.stack(columns, axis=1)


def _parameters(recipe: Recipe, channels: int) -> _Float64:
    """Factors, then the values that a middling pixel becomes, in the recipe's order of channels."""
    factors, offsets = affine(recipe)
    return np.concatenate([factors[:channels], (offsets + _MIDDLE * factors)[:channels]])


def _with_parameters(recipe: Recipe, values: Sequence[float] | _Float64) -> Recipe:
    factors, middle = np.split(np.asarray(values, dtype=np.float64), 2)
    return with_affine(recipe, recipe.channels, factors, middle - _MIDDLE * factors)

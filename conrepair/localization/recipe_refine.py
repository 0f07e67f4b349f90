"""Numbers of no name: the factors and offsets under which answers agree, by least squares on the answers.

A target may subtract any mean. From a recipe that is nearly right, steps by the derivatives of the answers lead to
the right numbers; far from it, or behind another fault, they lead nowhere, which the error shows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import scipy

from conrepair.data.pictures.recipe import Recipe
from conrepair.localization.recipe_family import affine, with_affine

__all__ = ["refine_numbers"]

_Float64 = npt.NDArray[np.float64]

_STEPS = 16
_DIFFERENCE = 1e-2  # of what is varied, for the derivatives: large enough to rise above float32's rounding
_MIDDLE = 127.5  # of the pixels: offsets there hardly depend on factors


class _EndedError(Exception):
    """Answers are as near as wanted, or there may be no more runs."""


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
        Branch, Coleman and Li, A Subspace, Interior, and Conjugate Gradient Method for Large-Scale Bound-Constrained
        Minimization Problems, 1999, as SciPy has it; derivatives are taken by running the target.
    """
    factors, offsets = (values[:channels] for values in affine(recipe))
    met: list[tuple[float, Recipe]] = []

    def answers(varied: _Float64) -> _Float64:
        """Of factors, and of the values that a middling pixel becomes, as shares of the recipe's own factors."""
        factor, middle = factors * varied[:channels], offsets + factors * _MIDDLE * varied[channels:]
        tried = with_affine(recipe, recipe.channels, factor, middle - factor * _MIDDLE) if met else recipe
        there = distance(tried)
        if there is None:
            raise _EndedError
        met.append((float(np.linalg.norm(there)), tried))
        if met[-1][0] <= enough:
            raise _EndedError
        return there

    with contextlib.suppress(_EndedError):
        scipy.optimize.least_squares(answers, np.ones(2 * channels), diff_step=_DIFFERENCE, max_nfev=_STEPS)
    return min(met, key=lambda item: item[0])[1] if met else recipe

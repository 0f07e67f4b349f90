"""Errors of results in units in the last place, and special values that came out wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from conrepair.ground.metrics.ulps import grid_of
from conrepair.ground.operators.record import Array
from conrepair_lab.accuracy.samples import element

Exact = tuple[Array, Array]
"""The values, and the magnitude that a rounding error on the way is relative to: of the terms, not of their sum."""


@dataclass(frozen=True)
class Errors:
    """The errors of one case.

    Attributes:
        ulps: Of each element, infinite where no number came; 0 where `ordinary` is false, as these aren't judged.
        relative: The errors relative to the scale of the right values.
        truth: The right values, with their scale.
        ordinary: Where the right value is a normal number, and so are the inputs.
    """

    ulps: Array
    relative: Array
    truth: Exact
    ordinary: Array


def errors_of(answer: Array, truth: Exact, inputs: Sequence[Array], dtype: str) -> Errors:
    """Compare results with exact values.

    Args:
        answer: Results of the system.
        truth: In float64, with its scale.
        inputs: In float64; elements decide over elements where they are as many.
        dtype: Of the system.
    """
    value, scale = truth
    limits = ml_dtypes.finfo(element(dtype))
    least, most = float(limits.smallest_normal), float(limits.max)
    size = np.abs(value)
    ordinary = (size <= most) & ((size >= least) | (value == 0))
    for array in inputs:
        if array.shape == value.shape:
            ordinary &= np.isfinite(array) & ((np.abs(array) >= least) | (array == 0))
    got = answer.astype(np.float64)
    size = np.fmax(np.abs(scale), size)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        error = np.abs(got - value)
        error[~np.isfinite(error)] = np.inf
        error[~ordinary | (error == 0)] = 0.0
        # What should be 0 may be less than any normal number.
        units = np.where(size == 0, least, grid_of(element(dtype)).ulp(np.fmax(size, least)))
        return Errors(error / units, np.where(error == 0, 0.0, error / size), truth, ordinary)


def special_words(answer: Array, truth: Array, inputs: Sequence[Array], dtype: str) -> Iterator[str]:
    """Special values (NaN, infinities, zeros, subnormal numbers) that came out wrong, in words.

    Args:
        answer: Of the system.
        truth: In float64, without its scale.
        inputs: In float64, each of the answer's shape.
        dtype: Of the system.
    """
    kind = element(dtype)
    limits = ml_dtypes.finfo(kind)
    least = float(limits.smallest_normal)
    got = answer.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        right = truth.astype(kind).astype(np.float64)
    zero = np.all([array == 0 for array in inputs], 0)
    few = np.logical_or.reduce([(np.abs(array) < least) & (array != 0) for array in inputs])
    wrong = {
        "{got} instead of NaN": np.isnan(right) & ~np.isnan(got),
        "{got} instead of {right}": np.isinf(right) & (got != right),
        "{got} instead of a number": np.isfinite(right) & ~np.isfinite(got) & ~np.all(np.isfinite(inputs), 0),
        "0 loses its sign": (right == 0) & (got == 0) & (np.signbit(right) != np.signbit(got)) & zero,
        "subnormal results become 0": (np.abs(right) < least) & (right != 0) & (got == 0) & ~few,
        "subnormal inputs are taken as 0": few & (np.abs(right) >= least) & (np.abs(got - right) > np.abs(right) / 2),
    }
    for words, places in wrong.items():
        if places.any():
            place = tuple(index[0] for index in np.nonzero(places))
            where = ", ".join(f"{array[place]:.4g}" for array in inputs)
            found = words.format(got=f"{got[place]:.4g}", right=f"{right[place]:.4g}")
            yield found if "subnormal" in words else f"{found} at {where}"

"""How far results of a narrow type are from the truth, in units in the last place, and relatively."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

MOST_LEVELS = 256
"""Numbers that eight bits have."""

_OFF_STEP = 0.02  # tolerance in quantization steps: 255 times the rounding error of a difference in float32


@dataclass(frozen=True)
class Grid:
    """The numbers that a floating-point type has.

    Attributes:
        digits: Bits of the fraction, without the leading one.
        lowest: Exponent of the smallest normal number.
        highest: Exponent of the largest one.
        largest: The largest number.
    """

    digits: int
    lowest: int
    highest: int
    largest: float

    @property
    def unit(self) -> float:
        """What rounding to the nearest may change, relatively: half an ulp of 1."""
        return 2.0 ** -(self.digits + 1)

    def ulp(self, values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """The distance between the type's neighbours at each value; infinite where a value isn't finite.

        Below the smallest normal number, and at zero, it's the smallest subnormal number; above the largest number
        it stays what it is there.

        Args:
            values: Of any floating-point type that is at least as wide.
        """
        exponents = np.where(values == 0, self.lowest, np.frexp(values)[1] - 1)
        steps = np.ldexp(1.0, np.clip(exponents, self.lowest, self.highest) - self.digits)
        return np.where(np.isfinite(values), steps, np.inf)


@functools.cache
def grid_of(dtype: Any) -> Grid:
    """The grid of a type.

    Args:
        dtype: float16, bfloat16, float32 or float64.
    """
    info = ml_dtypes.finfo(dtype)
    return Grid(int(info.nmant), int(info.minexp), int(info.maxexp) - 1, float(info.max))


def step_of(values: npt.NDArray[Any]) -> float:
    """The step that all numbers are multiples of, as eight bits leave them; 0 without one.

    Args:
        values: Real numbers of any shape.
    """
    levels = np.unique(np.asarray(values, np.float64))
    if not 1 < levels.size <= MOST_LEVELS or not np.isfinite(levels).all():
        return 0.0
    step = float(np.diff(levels).min())
    return step if np.allclose(levels / step, np.rint(levels / step), atol=_OFF_STEP) else 0.0


def is_real(array: npt.NDArray[Any]) -> bool:
    """Whether an array holds real numbers: NumPy has no kind of its own for bfloat16.

    Args:
        array: Of any type.
    """
    kind = array.dtype.kind  # NumPy makes the name anew each time
    return kind == "f" or (kind == "V" and array.dtype.name == "bfloat16")


def is_number(array: npt.NDArray[Any]) -> bool:
    """Whether an array holds real or whole numbers, or truth values.

    Args:
        array: Of any type.
    """
    return array.dtype.kind in "biu" or is_real(array)


def ulps(results: npt.NDArray[Any], truth: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Distances |result - truth| in units in the last place of the truth, as the results' type has them.

    A correctly rounded result is at most 0.5 away. The unit of a truth below the smallest normal number, zero among
    them, is the smallest subnormal number; zeros of both signs are the same. A result that overflowed counts as the
    number that would follow the largest one, and so does every finite truth beyond that number: the largest number
    is 1 away from such a truth, infinity 0 (where float64 results are judged and the platform has nothing wider, an
    infinity is infinitely far from a finite truth). An infinite truth is met by the same infinity alone, NaN by NaN;
    everything else is infinitely far away.

    Args:
        results: Of float16, bfloat16, float32 or float64.
        truth: The same shape, float64 or longdouble.
    """
    grid = grid_of(results.dtype)
    wide = np.longdouble if grid.digits > 23 or truth.dtype == np.longdouble else np.float64
    given, right = results.astype(wide), truth.astype(wide)
    with np.errstate(all="ignore"):
        end = np.ldexp(wide(1), grid.highest + 1)
        near, met = np.clip(given, -end, end), np.clip(right, -end, end)
        distances = np.abs(near - met) / grid.ulp(met)
    distances = np.where(np.isinf(right) | np.isnan(distances), np.inf, distances)
    same = (given == right) | (np.isnan(given) & np.isnan(right))
    return np.where(same, 0.0, distances).astype(np.float64)

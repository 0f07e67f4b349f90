"""Weights that lie on a grid: stored in few bits once, and as real numbers since."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from conrepair.diagnosis.localization.numbers import naming
from conrepair.ground.graph.slices import HALF_STEP

_GROUPS = (256, 128, 64, 32, 16)  # neighbours that share a scale
_FEW = 64  # rows, and values of each, that are looked at first
_BITS = (2, 3, 4, 5, 6, 7, 8)
_FLOATS = {"float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}

Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class WeightGrid:
    """What weights were rounded to.

    Attributes:
        dtype: "int8", "uint4", "float8_e4m3fn": a type that holds the steps.
        granularity: "tensor", "channel" or "group".
        axis: Of the channels, or along which groups lie; None for a tensor.
        count: How many scales there are.
    """

    dtype: str
    granularity: str
    axis: int | None
    count: int

    @property
    def words(self) -> str:
        """For a person, after "are"."""
        where = {
            "tensor": "one scale for the whole tensor",
            "channel": f"a scale for each of {self.count} slices of axis {self.axis}",
            "group": f"{self.count} scales, for groups of neighbours",
        }
        return f"rounded to {self.dtype}, {where[self.granularity]}, and stored as real numbers"


def grid_of(original: Values, values: Values) -> WeightGrid | None:
    """Find the grid that values were rounded to; the coarsest granularity and the fewest bits that explain them.

    Symmetric grids with the scale of the largest magnitude (over 2^(b-1) - 1 steps, or 2^(b-1)), affine ones over the
    range with zero (2^b - 1 steps), and eight-bit floating point with a scale for its largest number: what quantizers
    write (see Jacob et al., Quantization and Training of Neural Networks, 2018; Micikevicius et al., FP8 Formats for
    Deep Learning, 2022).

    Args:
        original: As they should be, any shape.
        values: As they are, the same shape.

    Returns:
        None where no grid explains them.
    """
    if not np.isfinite(values).all() or not values.any():
        return None
    for granularity, axis, before, rows in _slices(original, values):
        few, some = (slice(None, None, max(1, size // _FEW)) for size in rows.shape)
        likely = [_lie_on(rows[few, some], grid) for grid in _grids(rows[few])]
        for grid in itertools.compress(_grids(rows), likely) if any(likely) else ():
            if _fits(before, rows, grid):
                return WeightGrid(grid[0], granularity, axis, len(rows))
    return None


def _slices(original: Values, values: Values) -> Iterator[tuple[str, int | None, Values, Values]]:
    """The ways to share scales, each with the values that share one in rows."""
    if values.size >= naming.SEVERAL:
        yield "tensor", None, original.reshape(1, -1), values.reshape(1, -1)
    for axis in range(values.ndim if values.ndim > 1 else 0):
        if values.size // values.shape[axis] >= naming.SEVERAL:
            count = values.shape[axis]
            before, rows = (np.moveaxis(array, axis, 0).reshape(count, -1) for array in (original, values))
            yield "channel", axis, before, rows
    for axis in dict.fromkeys((values.ndim - 1, 0)) if values.ndim > 1 else ():
        for turned in (False, True) if values.ndim > 2 else (False,):  # of two axes, one's slices lie along the other
            yield from _grouped(original, values, axis, turned=turned)


def _grouped(
    original: Values, values: Values, axis: int, *, turned: bool
) -> Iterator[tuple[str, int | None, Values, Values]]:
    """Neighbours along an axis, or of one slice of it, so many at a time, the last ones fewer."""
    sides = [np.moveaxis(array, axis, 0 if turned else -1) for array in (original, values)]
    flat = [array.reshape(len(array), -1) if turned else array.reshape(-1, array.shape[-1]) for array in sides]
    width = flat[0].shape[1]
    for size in _GROUPS:
        if width > size:
            # Zeros lie on each of the grids, and are no largest value.
            more = (0, 0), (0, -width % size)
            before, rows = ((np.pad(array, more) if more[1][1] else array).reshape(-1, size) for array in flat)
            yield "group", axis, before, rows


_Grid = tuple[str, Values, Values]
"""A type, how far apart the values of each row are that it holds, and where they begin."""


def _grids(rows: Values) -> Iterator[_Grid]:
    """The quantization grids of rows, as quantizers choose them."""
    peak = np.abs(rows).max(axis=1, keepdims=True)
    zero = np.zeros_like(peak)
    low, high = np.minimum(rows.min(axis=1, keepdims=True), 0), np.maximum(rows.max(axis=1, keepdims=True), 0)
    for bits in _BITS:
        for levels in (2 ** (bits - 1) - 1, 2 ** (bits - 1)):
            yield f"int{bits}", peak / levels, zero
        yield f"uint{bits}", (high - low) / (2**bits - 1), low
    for name, largest in _FLOATS.items():
        yield name, peak / largest, zero


def _fits(original: Values, rows: Values, grid: _Grid) -> bool:
    """Whether each value is on a grid, and the one nearest to what it was."""
    dtype, steps, begin = grid
    if not _lie_on(rows, grid):
        return False
    if dtype in _FLOATS:
        near = np.linalg.norm(rows - original) <= 0.1 * np.linalg.norm(original)
        return bool(near) and np.unique(rows[0]).size > 1
    near = (np.abs(rows - original) <= HALF_STEP * steps + 1e-12).mean() > 0.99  # what's cut off is further away
    return bool(near) and np.unique(np.round(_counts(rows[:1], steps[:1], begin[:1]))).size > 1


def _lie_on(rows: Values, grid: _Grid) -> bool:
    """Whether all values are a whole number of steps, or what a type of eight bits holds."""
    dtype, *steps = grid
    counts = _counts(rows, *steps)
    if dtype not in _FLOATS:
        return not bool((np.abs(counts - np.round(counts)) > naming.OFF_GRID).any())
    import ml_dtypes

    single = counts.astype(np.float32)
    return np.allclose(single.astype(getattr(ml_dtypes, dtype)).astype(np.float32), single, rtol=1e-5, atol=0)


def _counts(rows: Values, steps: Values, begin: Values) -> Values:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(steps > 0, (rows - begin) / steps, 0.0))

"""How one parameter differs from another: scaled, permuted, transposed, lost, rounded."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from conrepair.faults.fault import Kind
from conrepair.graph.layer_graph import Array, Parameter
from conrepair.graph.per_channel import per_channel
from conrepair.localize.diagnosis.grids import grid_of
from conrepair.localize.diagnosis.portions import portion_of

__all__ = ["Difference", "compare_parameters", "difference", "stored_as"]

_SAME = 1e-5  # relative L2; folding and other arithmetic leave less
_SAMPLED_ROWS = 4096
_FEW_LEVELS = 256
_MANY = 16  # numbers that aren't in a narrower type by chance
_SIGNED = re.compile(r"\buint(?=\d)")  # a symmetric grid fits either
_STEP_MARGIN = 1.01  # a value is at most half a step from its quantized one

Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Difference:
    """What differs.

    Attributes:
        kind: Of fault.
        words: After "is" or "are": "scaled by 2".
        relative: L2 of the difference, relative to the source's.
    """

    kind: Kind
    words: str
    relative: float

    @property
    def rule(self) -> str:
        """What it's called whichever layer and parameter it's of; empty where that matters."""
        return f"weights are {_SIGNED.sub('int', self.words)}" if self.kind is Kind.PRECISION else ""


def compare_parameters(source: Parameter, target: Parameter) -> Difference | None:
    """Compare two parameters of one role.

    Returns:
        None when they are the same, up to rounding or to the steps of the target's own quantization.
    """
    one, two = source.numpy().astype(np.float64), target.numpy().astype(np.float64)
    if one.size == two.size and one.shape != two.shape:
        squeezed = [tuple(size for size in array.shape if size != 1) for array in (one, two)]
        if squeezed[0] == squeezed[1]:
            two = two.reshape(one.shape)
    if one.shape != two.shape and 1 in (one.size, two.size):
        one, two = np.broadcast_arrays(one, two)
    if target.bits and one.shape == two.shape and _within_steps(one, two, target):
        return None
    portion = portion_of(one, two)
    return difference(one, two) if portion is None else _of_portion(portion, two, one)


def _of_portion(portion: Values, two: Values, whole: Values) -> Difference | None:
    """How a portion differs, whose scales may be those of the whole."""
    found = difference(portion, two)
    if found is None or grid_of(portion, two) is not None:
        return found
    low, high = whole.min(), whole.max()
    for ends in ([max(low, high, key=abs)], [low, high]):  # of a symmetric grid, and of an affine one
        shared = grid_of(np.append(portion, ends), np.append(two, ends))
        if shared is not None and shared.granularity == "tensor":
            return replace(found, kind=Kind.PRECISION, words=shared.words)
    return found


def difference(one: Array, two: Array) -> Difference | None:
    """Say how an array differs from the one that it should be.

    Args:
        one: As it should be.
        two: As it is.
    """
    if one.shape != two.shape:
        return Difference(Kind.PARAMETERS, f"of shape {list(two.shape)} instead of {list(one.shape)}", np.inf)
    one, two = one.astype(np.float64), two.astype(np.float64)
    endless = ~np.isfinite(one), ~np.isfinite(two)
    other = (endless[0] | endless[1]) & (one != two) & ~(np.isnan(one) & np.isnan(two))
    if other.any():
        lost = int((other & endless[1]).sum())
        words = f"not finite in {lost} places" if lost else f"finite in {int(other.sum())} places that weren't"
        return Difference(Kind.PARAMETERS, words, np.inf)
    one, two = (np.where(np.isfinite(array), array, 0.0) for array in (one, two))  # the same ones: masks have them
    norm, gap = float(np.linalg.norm(one)), float(np.linalg.norm(two - one))
    if gap <= _SAME * norm or (norm == 0 and gap == 0):
        return None
    relative = gap / norm if norm else np.inf
    for test in (_lost, _scaled, _reordered, _by_channel, _rounded, _some_rows):
        found = test(one, two)
        if found is not None:
            kind, words = found
            return Difference(kind, words, relative)
    return Difference(Kind.PARAMETERS, f"off by {relative:.2g} (relative L2), as if disturbed by noise", relative)


def _within_steps(one: Values, two: Values, target: Parameter) -> bool:
    """Whether each value is the nearest that the target's scales can hold."""
    scales = np.asarray(target.scales, dtype=np.float64)
    if not scales.size:
        return False
    if scales.size == 1:
        return bool(np.abs(one - two).max(initial=0) <= _STEP_MARGIN * scales[0] / 2 + 1e-12)
    for axis, size in enumerate(one.shape):
        if size == scales.size:
            steps = per_channel(scales, axis, one.ndim)
            if (np.abs(one - two) <= _STEP_MARGIN * steps / 2 + 1e-12).all():
                return True
    return False


Found = tuple[Kind, str] | None


def _lost(one: Values, two: Values) -> Found:
    if not two.any():
        return Kind.PARAMETERS, "zero everywhere"
    if two.size > 1 and np.ptp(two) == 0 and np.ptp(one) > 0:
        return Kind.PARAMETERS, f"{two.flat[0]:g} everywhere, as if never set"
    return None


def _scaled(one: Values, two: Values) -> Found:
    factor = float(np.vdot(one, two) / max(float(np.vdot(one, one)), 1e-300))
    if factor and np.linalg.norm(two - factor * one) <= 1e-4 * np.linalg.norm(two):
        words = "negated" if abs(factor + 1) < 1e-4 else f"scaled by {factor:.4g}"
        return Kind.PARAMETERS, words
    if one.size > 1 and (two >= 0).all() and (one >= 0).all() and one.any():
        for power, words in ((0.5, "the square root of what it was"), (2.0, "the square of what it was")):
            if np.allclose(two, one**power, rtol=1e-3):
                return Kind.PARAMETERS, words
    offset = two - one
    if one.size > 1 and np.ptp(offset) <= 1e-4 * np.abs(offset).max():
        return Kind.PARAMETERS, f"shifted by {float(offset.mean()):.4g}"
    return None


def _reordered(one: Values, two: Values) -> Found:
    """The same numbers in another order."""
    if not _same(np.sort(one, axis=None), np.sort(two, axis=None)):
        return None
    for axes in itertools.permutations(range(one.ndim)) if one.ndim <= 5 else ():
        turned = one.transpose(axes)
        if axes != tuple(range(one.ndim)) and turned.shape == two.shape and _same(turned, two):
            return Kind.PARAMETERS, f"transposed (axes {list(axes)})"
    if one.ndim > 2 and _same(np.flip(one, tuple(range(2, one.ndim))), two):
        return Kind.PARAMETERS, "flipped along the kernel's axes"
    for axis in range(one.ndim):
        for shift in (1, -1):
            if _same(np.roll(one, shift, axis), two):
                return Kind.PARAMETERS, f"shifted by {shift:+d} along axis {axis}"
    for axis in range(one.ndim):
        order = _order(one, two, axis)
        if order is not None:
            moved = int((order != np.arange(order.size)).sum())
            return Kind.PARAMETERS, f"permuted along axis {axis} ({moved} of {order.size} places)"
    return Kind.PARAMETERS, "the same numbers in another order"


def _by_channel(one: Values, two: Values) -> Found:
    """A factor for each slice of one axis."""
    for axis in range(one.ndim if one.ndim > 1 else 0):
        first, second = (np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1) for array in (one, two))
        squares = np.einsum("ij,ij->i", first, first)
        factors = np.einsum("ij,ij->i", first, second) / np.where(squares == 0, 1, squares)
        if first.shape[1] > 1 and np.linalg.norm(second - factors[:, None] * first) <= 1e-4 * np.linalg.norm(second):
            changed = np.abs(factors - 1) > 1e-4
            if not factors[changed].any():
                return Kind.PARAMETERS, f"zero in {int(changed.sum())} of {changed.size} slices of axis {axis}"
            span = f"{factors[changed].min():.3g} to {factors[changed].max():.3g}"
            return (
                Kind.PARAMETERS,
                f"scaled by {span} in {int(changed.sum())} of {changed.size} slices of axis {axis}",
            )
    return None


def _some_rows(one: Values, two: Values) -> Found:
    """Right but for a few slices."""
    for axis in range(one.ndim):
        first, second = (np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1) for array in (one, two))
        wrong = np.linalg.norm(first - second, axis=1) > _SAME * np.linalg.norm(first, axis=1)
        if 0 < wrong.sum() <= wrong.size // 2:
            places = ", ".join(map(str, np.flatnonzero(wrong)[:6]))
            return Kind.PARAMETERS, f"wrong in {int(wrong.sum())} of {wrong.size} slices of axis {axis} ({places})"
    return None


def stored_as(array: Array) -> str | None:
    """The narrower type that holds each of many numbers of 32 bits exactly; None when there's none."""
    if array.dtype != np.float32 or array.size < _MANY or not array.any():
        return None
    if not (array.view(np.uint32) & 0xFFFF).any():
        return "bfloat16"
    with np.errstate(over="ignore"):
        return "float16" if np.array_equal(array.astype(np.float16).astype(np.float32), array) else None


def _rounded(one: Values, two: Values) -> Found:
    """Half precision, or few levels."""
    single = two.astype(np.float32)
    if np.array_equal(single, two):
        bits = single.view(np.uint32)
        gap = np.abs(two - one)
        if not (bits & 0xFFFF).any() and (gap <= 2.0**-7 * np.abs(one) + 1e-30).all():
            return Kind.PRECISION, "rounded to bfloat16"
        with np.errstate(over="ignore"):
            half = single.astype(np.float16)
        if np.array_equal(half.astype(np.float32), single) and (gap <= 2.0**-10 * np.abs(one) + 2.0**-24).all():
            return Kind.PRECISION, "rounded to float16"
    grid = grid_of(one, two)
    if grid is not None:
        return Kind.PRECISION, grid.words
    levels = np.unique(np.round(two, 12))
    if levels.size <= _FEW_LEVELS < two.size or levels.size * 8 <= two.size:
        needed = max(int(np.ceil(np.log2(levels.size))), 1)
        if needed <= 8:
            return Kind.PRECISION, f"rounded to {levels.size} levels, which is {needed} bits for the whole tensor"
    return None


def _order(one: Values, two: Values, axis: int) -> npt.NDArray[np.int64] | None:
    """The permutation of one axis that makes both the same."""
    first, second = (np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1) for array in (one, two))
    if first.shape[0] > _SAMPLED_ROWS or first.shape[0] < 2:
        return None
    weights = np.random.default_rng(1).standard_normal(first.shape[1])
    ranks, others = np.argsort(first @ weights), np.argsort(second @ weights)
    order = np.empty(first.shape[0], np.int64)
    order[others] = ranks
    return order if _same(first[order], second) else None


def _same(one: Values, two: Values) -> bool:
    return bool(np.linalg.norm(one - two) <= _SAME * np.linalg.norm(one))

"""What the values themselves say of a difference: shifted, scaled, reordered, rounded, not finite."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from conrepair.evaluate.whole_numbers import are_texts
from conrepair.graph.kinds import Kind
from conrepair.graph.layer_graph import Array
from conrepair.localization.diagnosis.changed import order_along, order_words, span
from conrepair.localization.diagnosis.parameters import stored_as

__all__ = ["relation"]

_ALMOST = 1e-3  # relative L2 that counts as explained
_ONE = 5e-4  # from which on a factor is told from 1 in three digits
_BORDER = 0.9  # share of a difference that makes it the border's
_FEW_LEVELS = 256
_NARROW = {"bfloat16": 0.05, "float16": 0.01}  # relative L2 that storing a result in it may leave

Values = npt.NDArray[np.float64]


def relation(expected: Array, computed: Array) -> tuple[Kind | None, str] | None:
    """Say how one array can be made from the other.

    Args:
        expected: The source's, [batch, ...], in the source's layout.
        computed: The target's, in the same layout.

    Returns:
        The kind of fault that does so, None where several do, and words; None when nothing simple explains it.
    """
    if are_texts(expected, computed):
        return None
    if expected.shape != computed.shape:
        return None, f"shape {list(computed.shape)} instead of {list(expected.shape)}"
    one, two = expected.astype(np.float64), computed.astype(np.float64)
    broken = ~np.isfinite(two) & np.isfinite(one)
    if broken.any():
        what = "NaN" if np.isnan(two[broken]).all() else "infinite or NaN"
        return Kind.PRECISION, f"{int(broken.sum())} of {two.size} values are {what}"
    one, two = (np.where(np.isfinite(array), array, 0.0) for array in (one, two))
    if np.array_equal(one, two):
        return None  # in any order that makes it the same, too
    for found in (_zero, _affine, _shifted, _reordered, _rounded, _saturated, _channels, _border):
        result = next(found(one, two), None)
        if result is not None:
            return result
    return None


Found = Iterator[tuple[Kind | None, str]]


def _near(one: Values, two: Values) -> bool:
    return bool(np.linalg.norm(two - one) <= _ALMOST * np.linalg.norm(one))


def _zero(one: Values, two: Values) -> Found:
    if not two.any():
        yield None, "zero everywhere"


def _affine(one: Values, two: Values) -> Found:
    """A x + b for the whole tensor."""
    spread = float(one.std())
    if one.size < 3 or not spread:
        return
    a = float(((one - one.mean()) * (two - two.mean())).mean() / spread**2)
    b = float(two.mean() - a * one.mean())
    if _near(two, a * one + b) and two.std():
        parts = [
            f"{a:.4g} times" if abs(a - 1) > _ALMOST else "",
            f"{b:+.4g} off" if abs(b) > _ALMOST * spread else "",
        ]
        if any(parts):
            yield None, " and ".join(filter(None, parts)) + " what the source has"


def _shifted(one: Values, two: Values) -> Found:
    """By a cell along spatial axes, borders left out."""
    if one.ndim < 3:
        return
    # Which axes are spatial depends on the layout: every two that are neighbours, and each alone, are tried.
    axes = range(1, one.ndim)
    for group in [*((axis,) for axis in axes), *itertools.pairwise(axes)]:
        if any(one.shape[axis] < 4 for axis in group):
            continue
        for steps in itertools.product((-1, 0, 1), repeat=len(group)):
            if not any(steps):
                continue
            moved = np.roll(one, steps, group)
            inner = tuple(slice(1, -1) if axis in group else slice(None) for axis in range(one.ndim))
            if one[inner].std() and _near(moved[inner], two[inner]) and not _near(one[inner], two[inner]):
                words = ", ".join(
                    f"{step:+d} along axis {axis}" for step, axis in zip(steps, group, strict=True) if step
                )
                yield None, f"shifted by a cell ({words})"
                return


def _reordered(one: Values, two: Values) -> Found:
    gap = float(np.linalg.norm(two - one))
    allowed = min(_ALMOST * float(np.linalg.norm(one)), gap / 50)
    if float(np.linalg.norm(np.sort(one, axis=None) - np.sort(two, axis=None))) > allowed:
        return
    for axis in range(1, one.ndim):
        order = order_along(one, two, axis, _ALMOST)
        if order is not None and (words := order_words(order)):
            yield Kind.STRUCTURE, f"the same values in another order along axis {axis}: {words}"
            return
    yield Kind.STRUCTURE, "the same values in another order"


def _rounded(one: Values, two: Values) -> Found:
    relative = float(np.linalg.norm(two - one) / max(float(np.linalg.norm(one)), 1e-300))
    narrow = stored_as(two.astype(np.float32))
    if narrow is not None and relative < _NARROW[narrow]:
        yield Kind.PRECISION, f"stored as {narrow}"
    else:
        levels = np.unique(two)
        if 2 < levels.size <= _FEW_LEVELS < two.size // 4 and np.unique(one).size > 4 * levels.size:
            yield Kind.PRECISION, f"stored in {levels.size} levels"


def _saturated(one: Values, two: Values) -> Found:
    low, high = float(two.min()), float(two.max())
    if low < high and (one.min() < low or one.max() > high) and _near(np.clip(one, low, high), two):
        share = float(((one < low) | (one > high)).mean())
        yield None, f"cut off at {low:.4g} and {high:.4g} ({share:.0%} of the values)"


def _channels(one: Values, two: Values) -> Found:
    """A x + b for each slice of one axis, or wrong in a few slices only."""
    for axis in range(1, one.ndim):
        first, second = (np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1) for array in (one, two))
        if first.shape[1] < 8 or first.shape[0] < 2:
            continue
        gaps = np.linalg.norm(second - first, axis=1)
        wrong = gaps > _ALMOST * np.linalg.norm(first, axis=1)
        if 0 < wrong.sum() <= wrong.size // 4:
            places = ", ".join(map(str, np.flatnonzero(wrong)[:6]))
            yield None, f"wrong in {int(wrong.sum())} of {wrong.size} slices of axis {axis} ({places})"
            return
        means, others = first.mean(1, keepdims=True), second.mean(1, keepdims=True)
        centred = first - means
        squares = np.einsum("ij,ij->i", centred, centred)
        a = np.einsum("ij,ij->i", centred, second - others) / np.where(squares == 0, 1, squares)
        fitted = a[:, None] * centred + others
        if np.linalg.norm(fitted - second) <= _ALMOST * np.linalg.norm(second):
            scaled = "" if np.allclose(a, 1, rtol=0, atol=_ONE) else f"scaled by {span(a)} and "
            yield None, f"{scaled}shifted, for each slice of axis {axis}"
            return


def _border(one: Values, two: Values) -> Found:
    """Right but for the first and last cells of spatial axes."""
    gap = (two - one) ** 2
    total = float(gap.sum())
    if one.ndim < 3 or not total:
        return
    for group in itertools.pairwise(range(1, one.ndim)):
        if any(one.shape[axis] < 5 for axis in group):
            continue
        inner = tuple(slice(1, -1) if axis in group else slice(None) for axis in range(one.ndim))
        if 1 - float(gap[inner].sum()) / total > _BORDER:
            yield None, f"wrong at the border along axes {list(group)} only"
            return

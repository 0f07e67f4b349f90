"""What the values themselves say of a difference: shifted, scaled, reordered, rounded, not finite."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from conrepair.diagnosis.localization.faces.numbers.changed import order_along, order_words, span
from conrepair.diagnosis.localization.faces.numbers.parameters import stored_as
from conrepair.diagnosis.localization.numbers import naming
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.runtime.words import percent
from conrepair.verdicts.evaluate.whole_numbers import are_texts

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
    if not two.any():
        return None, "zero everywhere"
    tests = (_affine, _shifted, _reordered, _rounded, _saturated, _channels, _border)
    return next((found for test in tests if (found := test(one, two)) is not None), None)


Found = tuple[Kind | None, str] | None


def _near(one: Values, two: Values) -> bool:
    return bool(np.linalg.norm(two - one) <= naming.ALMOST * np.linalg.norm(one))


def _affine(one: Values, two: Values) -> Found:
    """A x + b for the whole tensor."""
    spread = float(one.std())
    if one.size < 3 or not spread:
        return None
    a = float(((one - one.mean()) * (two - two.mean())).mean() / spread**2)
    b = float(two.mean() - a * one.mean())
    factor = f"{a:.4g} times" if abs(a - 1) > naming.ALMOST else ""
    offset = f"{b:+.4g} off" if abs(b) > naming.ALMOST * spread else ""
    if not (factor or offset) or not _near(two, a * one + b) or not two.std():
        return None
    return None, f"{' and '.join(filter(None, (factor, offset)))} the original's values"


def _shifted(one: Values, two: Values) -> Found:
    """By a cell along spatial axes, borders left out."""
    # Which axes are spatial depends on the layout: every two that are neighbours, and each alone, are tried.
    axes = range(1, one.ndim if one.ndim > 2 else 0)
    for group in [*((axis,) for axis in axes), *itertools.pairwise(axes)]:
        if any(one.shape[axis] < 4 for axis in group):
            continue
        inner = tuple(slice(1, -1) if axis in group else slice(None) for axis in range(one.ndim))
        differ = one[inner].std() and not _near(one[inner], two[inner])
        for steps in itertools.product((-1, 0, 1), repeat=len(group)) if differ else ():
            if any(steps) and _near(np.roll(one, steps, group)[inner], two[inner]):
                ways = (f"{step:+d} along axis {axis}" for step, axis in zip(steps, group, strict=True) if step)
                return None, f"shifted by one element ({', '.join(ways)})"
    return None


def _reordered(one: Values, two: Values) -> Found:
    gap = float(np.linalg.norm(two - one))
    allowed = min(naming.ALMOST * float(np.linalg.norm(one)), gap / 50)
    if float(np.linalg.norm(np.sort(one, axis=None) - np.sort(two, axis=None))) > allowed:
        return None
    for axis in range(1, one.ndim):
        order = order_along(one, two, axis, naming.ALMOST)
        if order is not None and (words := order_words(order)):
            return Kind.STRUCTURE, f"the same values in another order along axis {axis}: {words}"
    return Kind.STRUCTURE, "the same values in another order"


def _rounded(one: Values, two: Values) -> Found:
    relative = float(np.linalg.norm(two - one) / max(float(np.linalg.norm(one)), 1e-300))
    narrow = stored_as(two.astype(np.float32))
    if narrow is not None and relative < naming.NARROW_RESULTS[narrow]:
        return Kind.PRECISION, f"stored as {narrow}"
    levels = np.unique(two)
    if 2 < levels.size <= naming.FEW_LEVELS < two.size // 4 and np.unique(one).size > 4 * levels.size:
        return Kind.PRECISION, f"stored in {levels.size} levels"
    return None


def _saturated(one: Values, two: Values) -> Found:
    low, high = float(two.min()), float(two.max())
    beyond = (one < low) | (one > high)
    if low == high or not beyond.any() or not _near(np.clip(one, low, high), two):
        return None
    return None, f"clipped at {low:.4g} and {high:.4g} ({percent(float(beyond.mean()))} of the values)"


def _channels(one: Values, two: Values) -> Found:
    """A x + b for each slice of one axis, or wrong in a few slices only."""
    for axis in range(1, one.ndim):
        first, second = (np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1) for array in (one, two))
        if first.shape[1] < 8 or first.shape[0] < 2:
            continue
        wrong = np.linalg.norm(second - first, axis=1) > naming.ALMOST * np.linalg.norm(first, axis=1)
        if 0 < wrong.sum() <= wrong.size // 4:
            places = ", ".join(map(str, np.flatnonzero(wrong)[:6]))
            return None, f"wrong in {int(wrong.sum())} of {wrong.size} slices of axis {axis} ({places})"
        means, others = first.mean(1, keepdims=True), second.mean(1, keepdims=True)
        centred = first - means
        squares = np.einsum("ij,ij->i", centred, centred)
        a = np.einsum("ij,ij->i", centred, second - others) / np.where(squares == 0, 1, squares)
        if np.linalg.norm(a[:, None] * centred + others - second) <= naming.ALMOST * np.linalg.norm(second):
            scaled = "" if np.allclose(a, 1, rtol=0, atol=naming.ONE) else f"scaled by {span(a)} and "
            return None, f"{scaled}shifted, for each slice of axis {axis}"
    return None


def _border(one: Values, two: Values) -> Found:
    """Right but for the first and last cells of spatial axes."""
    gap = (two - one) ** 2
    total = float(gap.sum())
    for group in itertools.pairwise(range(1, one.ndim if total else 0)):
        inner = tuple(slice(1, -1) if axis in group else slice(None) for axis in range(one.ndim))
        if all(one.shape[axis] >= 5 for axis in group) and 1 - float(gap[inner].sum()) / total > naming.BORDER:
            return None, f"wrong at the border along axes {list(group)} only"
    return None

"""What was done to numbers on the way: scaled, reordered, taken apart, some lost. Rounding may lie over it."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import scipy

from conrepair.diagnosis.localization.numbers import naming
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.runtime.words import telling

_MIRRORED = {(4, 2): "vertically", (4, 3): "horizontally"}  # by rank and axis of a kernel
_SAMPLED_ROWS = 4096
_PROJECTED = 24  # numbers that stand for a slice
_MOST_PARTS = 8  # equal ones that are moved as they are, or taken apart
_MOST_STEPS = 4  # that a table is moved on by: positions with an offset

Values = npt.NDArray[np.float64]
Found = tuple[Kind, str] | None


def scaled(one: Values, two: Values, noise: float) -> Found:
    """One factor, power or offset for all elements of a tensor.

    Args:
        one: As it should be.
        two: As it is.
        noise: Relative L2 error that rounding leaves, for this and all that follow.
    """
    factor = float(np.vdot(one, two) / max(float(np.vdot(one, one)), 1e-300))
    if factor and np.linalg.norm(two - factor * one) <= max(naming.SCALED, noise) * np.linalg.norm(two):
        negated = abs(factor + 1) < max(naming.SCALED, noise)
        return Kind.PARAMETERS, "negated" if negated else f"scaled by {telling(factor, digits=3 if noise else 4)}"
    if one.size > 1 and (two >= 0).all() and (one >= 0).all() and one.any():
        for power, words in ((0.5, "the square root of what it was"), (2.0, "the square of what it was")):
            if np.allclose(two, one**power, rtol=1e-3):
                return Kind.PARAMETERS, words
    offset = two - one
    if one.size > 1 and np.ptp(offset) <= naming.SCALED * np.abs(offset).max():
        return Kind.PARAMETERS, f"shifted by {float(offset.mean()):.4g}"
    return None


def reordered(one: Values, two: Values, noise: float) -> Found:
    """The same numbers in another order."""
    off, norm = max(naming.SAME, noise), np.linalg.norm(one)
    if abs(np.linalg.norm(two) - norm) > (off + naming.SAME) * norm:
        return None  # in whichever order, they're at least so far apart
    if not _same(np.sort(one, axis=None), np.sort(two, axis=None), off):
        return None
    for axes in itertools.permutations(range(one.ndim)) if one.ndim <= 5 else ():
        turned = one.transpose(axes)
        if axes != tuple(range(one.ndim)) and turned.shape == two.shape and _same(turned, two, off):
            return Kind.PARAMETERS, f"transposed (axes {list(axes)})"
    if one.ndim > 2 and _same(np.flip(one, tuple(range(2, one.ndim))), two, off):
        return Kind.PARAMETERS, "flipped along the kernel's axes"
    for axis in range(2, one.ndim):
        if _same(np.flip(one, axis), two, off):
            way = _MIRRORED.get((one.ndim, axis), "")
            return Kind.PARAMETERS, " ".join(filter(None, ("mirrored", way, f"(axis {axis} is in reverse order)")))
    for axis in range(one.ndim):
        order = order_along(one, two, axis, off)
        if order is not None:
            moved = int((order != np.arange(order.size)).sum())
            words = f"permuted along axis {axis} ({moved} of {order.size} places)"
            return Kind.PARAMETERS, ": ".join(filter(None, (words, order_words(order))))
    # Of many numbers, those of another weight are about the same ones in some order.
    return None if noise else (Kind.PARAMETERS, "the same numbers in another order")


def moved_on(one: Values, two: Values, noise: float) -> Found:
    """A table that begins some rows earlier or later: rolled, or as positions with an offset, which end otherwise."""
    off = max(naming.SAME, noise)
    for axis, steps, sign in itertools.product(range(one.ndim), range(1, _MOST_STEPS + 1), (1, -1)):
        ours, theirs = (np.moveaxis(array, axis, 0)[::sign] for array in (one, two))
        kept, given = ours[:-steps], theirs[steps:]
        if len(ours) <= 2 * steps or not _same(kept[[0, -1]], given[[0, -1]], off):
            continue
        large = 2 * np.linalg.norm(kept) > np.linalg.norm(ours)
        if large and _same(kept, given, off) and not _same(ours[steps:], given, off):
            rest = f", with other numbers in {steps} of {len(ours)} places"
            rest = "" if _same(ours[-steps:], theirs[:steps], off) else rest
            return Kind.PARAMETERS, f"shifted by {sign * steps:+d} along axis {axis}{rest}"
    return None


def by_channel(one: Values, two: Values, noise: float) -> Found:
    """A factor for each slice of one axis."""
    for axis in range(one.ndim if one.ndim > 1 else 0):
        first, second = (np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1) for array in (one, two))
        squares = np.einsum("ij,ij->i", first, first)
        factors = np.einsum("ij,ij->i", first, second) / np.where(squares == 0, 1, squares)
        gap, size = np.linalg.norm(second - factors[:, None] * first), np.linalg.norm(second)
        changed = np.abs(factors - 1) > max(naming.SCALED, naming.CERTAIN * noise)
        if first.shape[1] > 1 and gap <= max(naming.SCALED, noise) * size and changed.any():
            if not factors[changed].any():
                return Kind.PARAMETERS, f"zero in {int(changed.sum())} of {changed.size} slices of axis {axis}"
            return (
                Kind.PARAMETERS,
                f"scaled by {span(factors[changed])} in {int(changed.sum())} of {changed.size} slices of axis {axis}",
            )
    return None


def span(factors: Values) -> str:
    """Numbers for a person: the smallest and the largest, or what all are."""
    ends = float(factors.min()), float(factors.max())
    texts = [f"{end:.3g}" for end in ends]
    return " to ".join(dict.fromkeys(map(telling, ends) if set(texts) == {"1"} else texts))


def some_rows(one: Values, two: Values, noise: float) -> Found:
    """A tensor of which only a few slices are wrong."""
    off = max(naming.SAME, naming.CERTAIN * noise)
    for axis in range(one.ndim):
        first, second = (np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1) for array in (one, two))
        wrong = np.linalg.norm(first - second, axis=1) > off * np.linalg.norm(first, axis=1)
        if 0 < wrong.sum() <= wrong.size // 2:
            places = ", ".join(map(str, np.flatnonzero(wrong)[:6]))
            return Kind.PARAMETERS, f"wrong in {int(wrong.sum())} of {wrong.size} slices of axis {axis} ({places})"
    return None


def cut_off(one: Values, two: Values, noise: float) -> Found:
    """Small numbers set to zero, or large ones to a limit, and all others as they were."""
    wrong = _places(one, two)
    if noise or not 1 < wrong.sum() < wrong.size:
        return None
    count, lost, given = f"{int(wrong.sum())} of {wrong.size} elements", np.abs(one[wrong]), two[wrong]
    if not given.any():
        kept = np.abs(one[~wrong & (one != 0)])
        every = kept.size and kept.min() >= lost.max()
        return Kind.PARAMETERS, f"zero in {count}, {'all' if every else 'some'} elements below {lost.max():.3g}"
    low, high = float(two.min()), float(two.max())
    if np.isin(given, (low, high)).all() and ((one[wrong] < low) | (one[wrong] > high)).all():
        return Kind.PARAMETERS, f"clipped to the range [{low:.3g}, {high:.3g}], which {count} were beyond"
    return None


def some_places(one: Values, two: Values, noise: float) -> Found:
    """A tensor of which only a few numbers are wrong."""
    wrong = _places(one, two)
    if noise or not 0 < wrong.sum() <= wrong.size // 2:
        return None
    return Kind.PARAMETERS, f"wrong in {int(wrong.sum())} of {wrong.size} elements, and the same in all others"


def _places(one: Values, two: Values) -> npt.NDArray[np.bool_]:
    """Where numbers aren't the same ones."""
    return np.abs(two - one) > naming.SAME * np.abs(one)


def order_words(order: npt.NDArray[np.int64]) -> str:
    """What moves places so, for a person: parts that are exchanged, or an axis that is two in the other order.

    Args:
        order: The place in the source of what stands at each place of the target.

    Returns:
        Nothing where no rule moves them.
    """
    size, places = order.size, np.arange(order.size)
    factors = [factor for factor in range(1, size + 1) if size % factor == 0]
    for outer, one, other in itertools.product(factors, factors[1:], factors[1:]):
        inner, rest = divmod(size, outer * one * other)
        shape, turned = (outer, one, other, inner), (outer, other, one, inner)
        if inner and not rest and np.array_equal(order, places.reshape(shape).swapaxes(1, 2).ravel()):
            ours, theirs = (" x ".join(str(part) for part in sizes if part > 1) for sizes in (shape, turned))
            return f"the axis is {theirs} in the converted model, {ours} in the original"
    for parts in (number for number in factors[1:] if number <= min(_MOST_PARTS, size // 2)):
        starts = order[:: size // parts]
        if np.array_equal(order, (starts[:, None] + places[: size // parts]).ravel()):
            return f"its {parts} equal parts are in the order {(starts * parts // size).tolist()}"
    return "it's in reverse order" if size > naming.FEW and np.array_equal(order, places[::-1]) else ""


def order_along(one: Values, two: Values, axis: int, off: float) -> npt.NDArray[np.int64] | None:
    """The permutation of one axis that makes both the same: each slice's nearest one, by what projections leave."""
    first, second = (np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1) for array in (one, two))
    if not 2 <= first.shape[0] <= _SAMPLED_ROWS:
        return None
    if first.shape[1] > _PROJECTED:
        projection = np.random.default_rng(1).standard_normal((first.shape[1], _PROJECTED))
        near = scipy.spatial.distance.cdist(second @ projection, first @ projection)
    else:
        near = scipy.spatial.distance.cdist(second, first)
    order = np.argmin(near, axis=1)
    return order if np.unique(order).size == order.size and _same(first[order], second, off) else None


def portion_of(whole: Array, given: Array) -> Values | None:
    """The portion of an array that another one is nearest to: queries, keys or values of one projection, for example.

    Args:
        whole: Any shape.
        given: Of the same shape, but for one axis that's a whole number of times shorter.

    Returns:
        In `given`'s shape; None where there's no such axis, or none of the portions is much nearer than the others.
    """
    if whole.ndim != given.ndim or not given.size or whole.size == given.size:
        return None
    axes = [axis for axis in range(whole.ndim) if whole.shape[axis] != given.shape[axis]]
    if len(axes) != 1 or whole.shape[axes[0]] % given.shape[axes[0]]:
        return None
    count = whole.shape[axes[0]] // given.shape[axes[0]]
    if count > _MOST_PARTS:
        return None
    portions = np.split(whole.astype(np.float64), count, axis=axes[0])
    gaps = [float(np.linalg.norm(portion - given)) for portion in portions]
    first, second = sorted(gaps)[:2]
    if first > naming.LIKE * float(np.linalg.norm(given)) or first * naming.LIKER >= second:
        return None
    return portions[gaps.index(first)]


def _same(one: Values, two: Values, off: float) -> bool:
    return bool(np.linalg.norm(one - two) <= off * np.linalg.norm(one))

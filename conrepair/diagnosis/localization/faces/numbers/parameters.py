"""How one parameter differs from another: scaled, permuted, transposed, lost, rounded; as a mask, in which places."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from conrepair.diagnosis.localization.faces.numbers.changed import (
    Found,
    Values,
    by_channel,
    cut_off,
    moved_on,
    portion_of,
    reordered,
    scaled,
    some_places,
    some_rows,
)
from conrepair.diagnosis.localization.faces.numbers.grids import grid_of
from conrepair.diagnosis.localization.faces.numbers.own_grid import beyond_integers, other_grid, within_steps
from conrepair.diagnosis.localization.judge.quantization import MOST_BITS, rounding_error
from conrepair.diagnosis.localization.numbers import few_bits, naming
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Array, Parameter
from conrepair.ground.runtime.words import percent

_SIGNED = re.compile(r"\buint(?=\d)")  # a symmetric grid fits either


@dataclass(frozen=True)
class ParameterDifference:
    """A difference of a parameter.

    Attributes:
        kind: Of fault.
        words: After "is" or "are": "scaled by 2".
        relative: L2 of the difference, relative to the source's.
        plain: Whether one operation on all numbers explains it: no rounding does.
        of_grid: Whether the integers are right, and what they stand for isn't.
        disturbed: Whether nothing explains it: all numbers are a little off.
    """

    kind: Kind
    words: str
    relative: float
    plain: bool = False
    of_grid: bool = False
    disturbed: bool = False

    @property
    def rule(self) -> str:
        """What it's called whichever layer and parameter it's of; empty where that matters."""
        return f"weights are {_SIGNED.sub('int', self.words)}" if self.kind is Kind.PRECISION else ""


def compare_parameters(source: Parameter, target: Parameter) -> ParameterDifference | None:
    """Compare two parameters of one role.

    Returns:
        None when they are the same, up to rounding or to the steps of the target's own quantization.
    """
    numbers = source.numpy(), target.numpy()
    if any(array.dtype.kind not in "biufcV" for array in numbers):
        return _of_texts(*numbers)
    one, two = (array.astype(np.float64) for array in numbers)
    if one.size == two.size and one.shape != two.shape:
        squeezed = [tuple(size for size in array.shape if size != 1) for array in (one, two)]
        if squeezed[0] == squeezed[1]:
            two = two.reshape(one.shape)
    if one.shape != two.shape and 1 in (one.size, two.size):
        one, two = np.broadcast_arrays(one, two)
    if target.bits and one.shape == two.shape:
        if within_steps(one, two, target):
            return None
        relative = float(np.linalg.norm(two - one) / (np.linalg.norm(one) or 1.0))
        words = beyond_integers(one, two, target)
        if words is not None:
            return ParameterDifference(Kind.PRECISION, words, relative)
        words = other_grid(one, two, target) if target.bits <= MOST_BITS else None
        if words is not None:
            return ParameterDifference(Kind.PARAMETERS, words, relative, plain=True, of_grid=True)
    if all(array.dtype.kind in "iu" for array in numbers) and not target.bits and one.shape == two.shape:
        return _of_whole_numbers(one, two)
    portion = portion_of(one, two)
    if portion is not None:
        return _of_portion(portion, two, one)
    return difference(one, two, rounding_error(target, two) if target.bits else _off_levels(two))


def _of_texts(one: Array, two: Array) -> ParameterDifference | None:
    """How texts differ, which nothing is computed with."""
    if one.shape != two.shape:
        words = f"of shape {list(two.shape)} in the converted model, {list(one.shape)} in the original"
        return ParameterDifference(Kind.PARAMETERS, words, 1.0)
    other = np.not_equal(one, two).astype(bool)
    if not other.any():
        return None
    pair = two[other][0], one[other][0]
    theirs, ours = (text.decode(errors="replace") if isinstance(text, bytes) else str(text) for text in pair)
    return ParameterDifference(Kind.PARAMETERS, _others(theirs, ours, other), float(other.mean()) ** 0.5)


def _of_whole_numbers(one: Values, two: Values) -> ParameterDifference | None:
    """How indices, or other counts, differ: they're other ones, and not off by so much."""
    other = one != two
    if not other.any():
        return None
    relative = float(np.linalg.norm(two - one) / (np.linalg.norm(one) or 1.0))
    found = (scaled(one, two, 0.0) or reordered(one, two, 0.0)) if one.size > 1 else None
    if found is not None:
        return ParameterDifference(*found, relative, plain=True)
    words = _others(f"{two[other][0]:.0f}", f"{one[other][0]:.0f}", other)
    return ParameterDifference(Kind.PARAMETERS, words, relative)


def _others(target: str, source: str, other: Array) -> str:
    """The first index or text that differs, and how many do."""
    places = "" if other.size == 1 else f", and so in {int(other.sum())} of {other.size} places"
    return f"{target} in the converted model, {source} in the original{places}"


def _of_portion(portion: Values, two: Values, whole: Values) -> ParameterDifference | None:
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


def difference(one: Array, two: Array, rounding: float = 0.0) -> ParameterDifference | None:
    """Say how an array differs from the one that it should be.

    What few bits leave of numbers may lie over any other difference: as much of it is taken for that.

    Args:
        one: As it should be.
        two: As it is.
        rounding: Relative L2 error that the bits of the second explain.
    """
    if one.shape != two.shape:
        return ParameterDifference(
            Kind.PARAMETERS, f"of shape {list(two.shape)} instead of {list(one.shape)}", np.inf
        )
    one, two = one.astype(np.float64), two.astype(np.float64)
    endless = ~np.isfinite(one), ~np.isfinite(two)
    other = (endless[0] | endless[1]) & (one != two) & ~(np.isnan(one) & np.isnan(two))
    if other.any():
        lost = int((other & endless[1]).sum())
        words = f"not finite in {lost} places" if lost else f"finite in {int(other.sum())} places that weren't"
        return ParameterDifference(Kind.PARAMETERS, words, np.inf)
    one, two = (np.where(np.isfinite(array), array, 0.0) for array in (one, two))  # the same ones: masks have them
    norm, gap = float(np.linalg.norm(one)), float(np.linalg.norm(two - one))
    if gap <= naming.SAME * norm or (norm == 0 and gap == 0):
        return None
    relative = gap / norm if norm else np.inf
    noise = few_bits.TWICE * rounding
    changes: tuple[Callable[[Values, Values, float], Found], ...] = (scaled, moved_on, reordered, by_channel, cut_off)
    tests = (_lost, *(changes if relative > noise else ()), _rounded, some_rows, some_places)
    for test in tests:
        found = test(one, two, noise)
        if found is not None:
            kind, words = found
            return ParameterDifference(kind, words, relative, test in {_lost, scaled, reordered, moved_on, cut_off})
    words = f"off by {percent(relative)} everywhere, as if random noise were added"
    return ParameterDifference(Kind.PARAMETERS, words, relative, disturbed=True)


def _lost(one: Values, two: Values, _: float) -> Found:
    if not two.any():
        return Kind.PARAMETERS, "zero everywhere"
    if two.size > 1 and np.ptp(two) == 0 and np.ptp(one) > 0:
        return Kind.PARAMETERS, f"{two.flat[0]:g} everywhere, as if never loaded"
    return None


def _off_levels(two: Values) -> float:
    """The relative L2 error that rounding to few levels explains; 0 where numbers have many."""
    if np.unique(two.flat[:: max(1, two.size >> 12)]).size > naming.FEW_LEVELS:
        return 0.0  # a large matrix isn't sorted for that
    levels = np.unique(two)
    if not 2 < levels.size <= naming.FEW_LEVELS < two.size:
        return 0.0
    size = float(np.sqrt(np.mean(np.square(two))))
    return float(np.median(np.diff(levels))) / math.sqrt(12) / size if size else 0.0


def stored_as(array: Array) -> str | None:
    """The narrower type that holds each of many numbers of 32 bits exactly; None when there's none."""
    return None if array.dtype != np.float32 or array.size < naming.MANY or not array.any() else _narrower(array)


def _narrower(single: Array) -> str | None:
    if not (single.view(np.uint32) & 0xFFFF).any():
        return "bfloat16"
    with np.errstate(over="ignore"):
        return "float16" if np.array_equal(single.astype(np.float16).astype(np.float32), single) else None


def _rounded(one: Values, two: Values, _: float) -> Found:
    """Half precision, or few levels."""
    single = two.astype(np.float32)
    narrow = _narrower(single) if np.array_equal(single, two) else None
    relative, least = naming.NARROW_NUMBERS.get(narrow or "", (0.0, 0.0))
    if narrow is not None and (np.abs(two - one) <= relative * np.abs(one) + least).all():
        return Kind.PRECISION, f"rounded to {narrow}"
    grid = grid_of(one, two)
    if grid is not None:
        return Kind.PRECISION, grid.words
    if np.linalg.norm(two - one) > naming.LIKE * np.linalg.norm(one):
        return None
    levels = np.unique(np.round(two, 12))
    if levels.size >= np.unique(np.round(one, 12)).size:
        return None  # it had no more before
    if levels.size <= naming.FEW_LEVELS < two.size or levels.size * 8 <= two.size:
        needed = max(int(np.ceil(np.log2(levels.size))), 1)
        if needed <= 8:
            return Kind.PRECISION, f"rounded to {levels.size} levels, which is {needed} bits for the whole tensor"
    return None


def hide_alike(source: Array, target: Array) -> bool:
    """Whether numbers differ only where both are so low that no softmax tells them from one another."""
    if source.shape != target.shape or {source.dtype.kind, target.dtype.kind} != {"f"}:
        return False
    hidden = source <= naming.MASKING
    return np.array_equal(hidden, target <= naming.MASKING) and np.array_equal(source[~hidden], target[~hidden])


def mask_words(source: Array, target: Array) -> str | None:
    """Say how two masks differ, after "is"; None where one of them is none, or both say the same.

    Args:
        source: Zeros and ones (or truth values), or zeros and numbers that hide what they're added to.
        target: The same, of the same shape.
    """
    if source.shape != target.shape or source.size < naming.MASKED:
        return None
    ours, theirs = _chosen(source), _chosen(target)
    if ours is None or theirs is None or ours.all() or not ours.any():
        return None
    other = int((ours != theirs).sum())
    if not other:
        return None
    if other == ours.size:
        return "a mask, inverted"
    words = f"a mask that differs in {other} of {ours.size} places"
    if theirs.all() or not theirs.any():
        return f"{words}: all its values are the same"
    shift = _diagonals(ours, theirs)
    return f"{words}: shifted by {_counted(shift)}" if shift else words


def _chosen(array: Array) -> npt.NDArray[np.bool_] | None:
    """Where a mask is one, or hides; None for what is no mask."""
    if array.dtype == np.bool_:
        return np.asarray(array)
    if array.dtype.kind not in "iuf":
        return None
    low = np.asarray(array <= naming.MASKING)
    if (low | (array == 0)).all() and (low.any() or not array.any()):
        return low
    one = np.asarray(array == 1)
    return one if (one | (array == 0)).all() else None


def _diagonals(ours: npt.NDArray[np.bool_], theirs: npt.NDArray[np.bool_]) -> int:
    """By how many diagonals of the last two axes one is the other, shifted; 0 where it isn't."""
    if ours.ndim < 2:
        return 0
    columns = ours.shape[-1]
    for shift in (1, -1, 2, -2):
        first = ours[..., max(-shift, 0) : columns - max(shift, 0)]
        second = theirs[..., max(shift, 0) : columns - max(-shift, 0)]
        if first.shape[-1] > 1 and np.array_equal(first, second):
            return shift
    return 0


def _counted(shift: int) -> str:
    return f"{abs(shift)} diagonal{'s' if abs(shift) > 1 else ''}"

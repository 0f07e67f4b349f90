"""Parameters as numbers: two are one where they're equal, or where they were computed of equal ones and rounded."""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.ground.metrics.tensors import blocks

Array = npt.NDArray[Any]

FOLDED = 16.0
"""Roundings of float32 that a folded number may be off by: a converter rounds each of the few steps that make one (a
root, a quotient, a product, a difference)."""
_UNIT = 2.0**-24
_ALIKE = 1e-5  # relative: sketches of arrays that are worth a look at each number
_TYPED = 4.0
"""Roundings of float32 that a number may be off by that's written as text, or computed of such."""
_SOME = 2**16  # numbers of an array that its sketch is of


@dataclass(frozen=True)
class Stored:
    """Where numbers can be had.

    Attributes:
        load: Reads or computes them.
        size: Of each number what it was summed of, by magnitude; None for the numbers themselves.
        roundings: Of float32 that a number may be off by.
    """

    load: Callable[[], Array]
    size: Callable[[], Array] | None = None
    roundings: float = 1.0

    def magnitude(self) -> Array:
        """Of each number what it was summed of."""
        return np.abs(self.load()) if self.size is None else self.size()


class Numbers:
    """Arrays of all sides, each with a number of its own.

    Two are told apart by their sketches, and compared block by block where these are alike: those of a large network
    are read from where they're mapped, and not copied.

    Attributes:
        rounding: The largest relative difference of numbers that were taken for equal, by the array's number.
    """

    def __init__(self) -> None:
        self.rounding: dict[int, float] = {}
        self._numbers: dict[Stored, int] = {}
        self._known: dict[bytes, int] = {}
        self._met: dict[tuple[int, ...], list[tuple[int, Array, Stored]]] = defaultdict(list)
        self._stored: list[Stored] = []
        self._single: dict[str, list[float]] = defaultdict(list)

    def number(self, stored: Stored) -> int:
        """The number of an array, which equal ones share."""
        if stored not in self._numbers:
            array = stored.load()
            is_real = array.dtype.kind not in "iubcOSUT" and array.size
            self._numbers[stored] = self._near(array, stored) if is_real else self._equal(array, stored)
        return self._numbers[stored]

    def _equal(self, array: Array, stored: Stored) -> int:
        """The number of an array of whole or complex numbers, or of texts."""
        plain = _plain(array)
        digest = hashlib.blake2b(repr((plain.shape, plain.dtype.str)).encode())
        digest.update(plain.tobytes())
        number = self._known.setdefault(digest.digest(), len(self._stored))
        return self._new(stored) if number == len(self._stored) else number

    def alike(self, number: float) -> float:
        """A number, or one that was met before and is the same but for how it was written."""
        if not number or not math.isfinite(number):
            return number + 0.0
        near = [other for place in (1 - _ALIKE, 1, 1 + _ALIKE) for other in self._single[f"{number * place:.4g}"]]
        found = min(near, key=lambda other: abs(other - number), default=number)
        off = abs(found / number - 1)
        if off > _TYPED * _UNIT:
            found = number
        elif np.float32(found) != np.float32(number):
            self.rounding[-1] = max(off, self.rounding.get(-1, 0.0))
        if found == number and number not in near:
            self._single[f"{number:.4g}"].append(number)
        return found

    def load(self, number: int) -> Array:
        """The array of a number, as it was first met."""
        return self._stored[number].load()

    def _near(self, array: Array, stored: Stored) -> int:
        """The number of an equal array, else of one that differs by rounding alone; a new one where there's none."""
        sketch, met = _sketch(array), self._met[array.shape or (1,)]
        among = [item for item in met if _is_alike(sketch, item[1])]
        for number, _, other in among:
            if all(_are_equal(*pair) for pair in blocks(array, other.load())):
                return number
        for number, _, other in among:
            off = _apart(stored, other) if other is self._stored[number] else None
            if off is not None:
                self.rounding[number] = max(off, self.rounding.get(number, 0.0))
                break
        else:
            number = self._new(stored)
        met.append((number, sketch, stored))
        return number

    def _new(self, stored: Stored) -> int:
        self._stored.append(stored)
        return len(self._stored) - 1


def _apart(stored: Stored, other: Stored) -> float | None:
    """By how much two arrays differ, relative to the largest number; None if that's more than rounding."""
    both = stored, other
    arrays = [item.load() for item in both]
    sizes = [array if item.size is None else item.size() for item, array in zip(both, arrays, strict=True)]
    most, furthest, largest = max(stored.roundings, other.roundings), 0.0, 0.0
    for parts in blocks(*arrays, *sizes):
        one, two, *summed = (part.astype(np.float64) for part in parts)
        with np.errstate(invalid="ignore"):
            off, same = np.abs(one - two), _same(one, two)
            near = np.isfinite(off) & (off <= most * _UNIT * np.maximum(*map(np.abs, summed)))
        if not (same | near).all():
            return None
        furthest = max(furthest, float(np.where(same, 0.0, off).max()))
        largest = max(largest, float(np.abs(one[np.isfinite(one)]).max(initial=0.0)))
    return furthest / (largest or 1.0)


def _are_equal(one: Array, two: Array) -> bool:
    if one.dtype == two.dtype and one.tobytes() == two.tobytes():
        return True
    return bool(_same(one.astype(np.float64), two.astype(np.float64)).all())


def _same(one: Array, two: Array) -> Array:
    return np.asarray((one == two) | (np.isnan(one) & np.isnan(two)))


def _is_alike(one: Array, two: Array) -> bool:
    return np.allclose(one, two, rtol=0, atol=_ALIKE * max(abs(one[0]), abs(two[0])))


_PLAIN = dict.fromkeys("iub", np.int64) | {"c": np.complex128}


def _plain(array: Array) -> Array:
    """Whole or complex numbers, texts, or no numbers at all, in one type of their kind."""
    if array.dtype.kind in "OSUT":
        return np.asarray(array, np.str_)
    return np.ascontiguousarray(array, _PLAIN.get(array.dtype.kind, np.float32))


def _sketch(array: Array) -> Array:
    """The norm of some numbers, and sums of every first, second and third one: no two layers have these by chance."""
    flat = np.asarray(array.flat[:: max(1, array.size // _SOME)]).astype(np.float64)
    flat = np.where(np.isfinite(flat), flat, 0)
    return np.array([np.linalg.norm(flat), *(flat[::step].sum() for step in (1, 2, 3))])

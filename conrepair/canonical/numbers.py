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

    Attributes:
        rounding: The largest relative difference of numbers that were taken for equal, by the array's number.
    """

    def __init__(self) -> None:
        self.rounding: dict[int, float] = {}
        self._known: dict[bytes, int] = {}
        self._sketches: dict[tuple[int, ...], list[tuple[int, Array]]] = defaultdict(list)
        self._stored: list[Stored] = []
        self._single: dict[str, list[float]] = defaultdict(list)

    def number(self, stored: Stored) -> int:
        """The number of an array, which equal ones share."""
        array = _plain(stored.load())
        digest = hashlib.blake2b(repr((array.shape, array.dtype.str)).encode())
        plain = array.dtype.kind in "fi" and array.size
        digest.update(array.reshape(-1).data.cast("B") if plain else array.tobytes())
        key = digest.digest()
        if key not in self._known:
            self._known[key] = self._near(array, stored)
        return self._known[key]

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
        """The number of an array that differs by rounding alone; a new one where there's none."""
        if array.dtype.kind == "f" and array.size:
            sketch = _sketch(array)
            among = self._sketches[array.shape]
            for number, other in among:
                if np.allclose(sketch, other, rtol=0, atol=_ALIKE * max(abs(sketch[0]), abs(other[0]))):
                    off = self._apart(array, stored, self._stored[number])
                    if off is not None:
                        self.rounding[number] = max(off, self.rounding.get(number, 0.0))
                        return number
            among.append((len(self._stored), sketch))
        self._stored.append(stored)
        return len(self._stored) - 1

    @staticmethod
    def _apart(array: Array, stored: Stored, other: Stored) -> float | None:
        """By how much two arrays differ, relative to the largest number; None if that's more than rounding."""
        one, two = array.astype(np.float64), other.load().astype(np.float64)
        sizes, most = (stored.magnitude(), other.magnitude()), max(stored.roundings, other.roundings)
        with np.errstate(invalid="ignore"):
            off = np.abs(one - two)
            same = (one == two) | (np.isnan(one) & np.isnan(two))
            near = np.isfinite(off) & (off <= most * _UNIT * np.maximum(*sizes))
        if not (same | near).all():
            return None
        return float(np.where(same, 0.0, off).max() / (np.abs(one[np.isfinite(one)]).max(initial=0.0) or 1.0))


def _plain(array: Array) -> Array:
    """Numbers in one type of their kind, and without zeros of a sign."""
    if array.dtype.kind in "iub":
        return np.ascontiguousarray(array, np.int64)
    if array.dtype.kind in "OSUT":
        return np.asarray(array, np.str_)
    narrow = np.asarray(array, np.float32)
    if array.dtype.itemsize > narrow.itemsize and not np.array_equal(narrow, array, equal_nan=True):
        narrow = np.asarray(array, np.float64)
    return np.ascontiguousarray(narrow) + narrow.dtype.type(0)


def _sketch(array: Array) -> Array:
    """The norm of some numbers, and sums of every first, second and third one: no two layers have these by chance."""
    flat = array.reshape(-1)[:: max(1, array.size // _SOME)].astype(np.float64)
    flat = np.where(np.isfinite(flat), flat, 0)
    return np.array([np.linalg.norm(flat), *(flat[::step].sum() for step in (1, 2, 3))])

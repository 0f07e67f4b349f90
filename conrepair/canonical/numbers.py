"""Parameters as numbers: two are one where they're equal, or where they were computed of equal ones and rounded."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Numbers", "Stored"]

Array = npt.NDArray[Any]

_ROUNDINGS = 16.0
"""Roundings of float32 that a folded number may be off by: a converter rounds each of the few steps that make one (a
root, a quotient, a product, a difference)."""
_UNIT = 2.0**-24
_ALIKE = 1e-5  # relative: sketches of arrays that are worth a look at each number


@dataclass(frozen=True)
class Stored:
    """Where numbers can be had.

    Attributes:
        load: Reads or computes them.
        size: Of each number what it was summed of, by magnitude; None for the numbers themselves.
    """

    load: Callable[[], Array]
    size: Callable[[], Array] | None = None

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

    def number(self, stored: Stored) -> int:
        """The number of an array, which equal ones share."""
        array = _plain(stored.load())
        digest = hashlib.blake2b(array.tobytes(), person=f"{array.dtype.str}{array.ndim}".encode()[:16])
        digest.update(repr(array.shape).encode())
        key = digest.digest()
        if key not in self._known:
            self._known[key] = self._near(array, stored)
        return self._known[key]

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
        sizes = stored.magnitude(), other.magnitude()
        with np.errstate(invalid="ignore"):
            off = np.abs(one - two)
            same = (one == two) | (np.isnan(one) & np.isnan(two))
            near = np.isfinite(off) & (off <= _ROUNDINGS * _UNIT * np.maximum(*sizes))
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
    """The norm, and sums of every first, second and third number, which no two layers have in common by chance."""
    flat = np.where(np.isfinite(array), array, 0).astype(np.float64).reshape(-1)
    return np.array([np.linalg.norm(flat), *(flat[::step].sum() for step in (1, 2, 3))])

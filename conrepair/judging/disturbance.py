"""Numbers disturbed as by rounding, in their last places: what a network makes of that is its conditioning."""

from __future__ import annotations

import numpy as np

from conrepair.judging import numbers
from conrepair.judging.arithmetic import Arithmetic
from conrepair.operators.record import Array

_SEED = 20261120
_CHUNK = 1 << 18  # elements at a time: what's computed on the way takes no memory worth the name


def shaken(array: Array) -> Array:
    """An array, each real number changed in its last places up or down, the same way every time.

    Whole numbers stay as they are: no rounding made a mask's ones, an index or a class, and a network may ask whether
    they are equal to others, or multiply what's left of them with the lowest number that there is.

    Args:
        array: Any shape.
    """
    if array.dtype.kind != "f":
        return array
    generator, one = np.random.default_rng(_SEED), array.dtype.type(1)
    every = 2.0 ** (np.finfo(array.dtype).nmant + 1)  # below it the type holds every whole number
    result = np.array(array, order="C")
    flat = result.reshape(-1)
    for start in range(0, flat.size, _CHUNK):
        part = flat[start : start + _CHUNK]
        signs = 2 * generator.integers(0, 2, part.shape, dtype=np.int8) - 1
        whole = (np.rint(part) == part) & (np.abs(part) < every)
        with np.errstate(over="ignore"):  # the lowest number of a mask, which becomes infinite
            np.multiply(part, one + signs * array.dtype.type(numbers.DISTURBANCE), out=part, where=~whole)
    return result


def as_rounding(expected: Array, disturbed: Array) -> Array:
    """What is left of a disturbance where it's as small as rounding; integers are the same or they aren't.

    Args:
        expected: As it is.
        disturbed: As it is where what it's computed of was disturbed.
    """
    if expected.dtype.kind != "f" or expected.shape != disturbed.shape:
        return disturbed
    with np.errstate(invalid="ignore", over="ignore"):
        part = expected + (disturbed - expected) * expected.dtype.type(numbers.ROUNDED)
    return np.where(np.isfinite(part), part, expected)


DISTURBED = Arithmetic("disturbed", numbers.DISTURBANCE, shaken)
"""In which each result is off by more than rounding makes it."""

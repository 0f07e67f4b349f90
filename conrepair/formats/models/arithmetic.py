"""How this thread computes with numbers, which third-party code changes for itself, and may leave so.

What has tiny numbers flushed to zero, or rounds otherwise, does so by a register of the processor that belongs to the
thread; compiled code did (pytorch#126848). Whoever computes there next gets other numbers, and nobody knows why.
"""

from __future__ import annotations

import ctypes
import sys

import numpy as np

from conrepair.ground.runtime.errors import InferenceError

_STATE_BYTES = 256  # of a thread's floating-point environment, more than any system's
_LIBRARY = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)
_HALF = 2.0**-53
_TINY, _LEAST, _ONE = np.array(np.finfo(np.float64).tiny), np.array(5e-324), np.ones(())  # which nobody folds


def settled() -> str:
    """Have this thread compute as IEEE 754 has it by default.

    Returns:
        What was otherwise, in words; "" for nothing.

    Raises:
        InferenceError: if it stays so.
    """
    words = _altered()
    if words:
        _LIBRARY.fesetenv(_DEFAULT)
        if _altered():
            raise InferenceError(f"what ran changed how this process computes, for all that follows: {words}")
    return words


def _altered() -> str:
    found = []
    with np.errstate(all="ignore"):
        if not (_TINY / 2 > 0 and _LEAST * 2.0**60 > 0):
            found.append("numbers below the smallest normal one are zero")
        if not (_ONE + _HALF == 1 and -_ONE - _HALF == -1 and _ONE + 1.5 * _HALF > 1):
            found.append("results aren't rounded to the nearest number")
    return ", and ".join(found)


_DEFAULT = ctypes.create_string_buffer(_STATE_BYTES)
_LIBRARY.fegetenv(_DEFAULT)

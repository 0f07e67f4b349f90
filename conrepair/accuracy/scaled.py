"""Numbers with the magnitude that their rounding errors are relative to."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

__all__ = ["Array", "Exact"]

Array = npt.NDArray[Any]
# The values, and the magnitude that a rounding error on the way is relative to: what the terms have, not their sum.
Exact = tuple[Array, Array]

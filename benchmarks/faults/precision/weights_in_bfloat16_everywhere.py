"""All layers' weights have eight bits of mantissa."""

from __future__ import annotations

from benchmarks.faults.everywhere import everywhere
from benchmarks.faults.precision.weights_in_bfloat16 import FAULT as ONCE

__all__ = ["FAULT"]


FAULT = everywhere(ONCE)

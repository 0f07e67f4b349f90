"""All layers' weights went through four bits, one scale for each group of 32."""

from __future__ import annotations

from benchmarks.faults.everywhere import everywhere
from benchmarks.faults.precision.weights_in_int4 import FAULT as ONCE

__all__ = ["FAULT"]


FAULT = everywhere(ONCE)

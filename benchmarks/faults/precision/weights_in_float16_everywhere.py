"""All layers' weights went through float16."""

from __future__ import annotations

from benchmarks.faults.everywhere import everywhere
from benchmarks.faults.precision.weights_in_float16 import FAULT as ONCE

__all__ = ["FAULT"]


FAULT = everywhere(ONCE)

"""All layers' weights went through eight bits, one scale for each output channel."""

from __future__ import annotations

from benchmarks.faults.everywhere import everywhere
from benchmarks.faults.precision.weights_in_int8 import FAULT as ONCE

__all__ = ["FAULT"]


FAULT = everywhere(ONCE)

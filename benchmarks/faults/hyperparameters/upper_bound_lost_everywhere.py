"""All clippings (ReLU6) are rectifiers without an upper bound."""

from __future__ import annotations

from benchmarks.faults.everywhere import everywhere
from benchmarks.faults.hyperparameters.upper_bound_lost import FAULT as ONCE

__all__ = ["FAULT"]


FAULT = everywhere(ONCE)

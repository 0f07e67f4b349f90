"""All layers' biases are lost."""

from __future__ import annotations

from benchmarks.faults.everywhere import everywhere
from benchmarks.faults.parameters.bias_dropped import FAULT as ONCE

__all__ = ["FAULT"]


FAULT = everywhere(ONCE)

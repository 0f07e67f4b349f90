"""No attention is masked any more."""

from __future__ import annotations

from benchmarks.faults.everywhere import everywhere
from benchmarks.faults.graph.mask_lost import FAULT as ONCE

__all__ = ["FAULT"]


FAULT = everywhere(ONCE)

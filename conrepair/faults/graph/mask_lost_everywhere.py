"""No attention is masked any more."""

from __future__ import annotations

from conrepair.faults.everywhere import everywhere
from conrepair.faults.graph.mask_lost import FAULT as ONCE

__all__ = ["FAULT"]


FAULT = everywhere(ONCE)

"""All layers' biases are lost."""

from __future__ import annotations

from conrepair.faults.everywhere import everywhere
from conrepair.faults.parameters.bias_dropped import FAULT as ONCE

__all__ = ["FAULT"]


FAULT = everywhere(ONCE)

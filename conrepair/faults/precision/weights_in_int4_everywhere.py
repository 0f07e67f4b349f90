"""All layers' weights went through four bits, one scale for each group of 32."""

from __future__ import annotations

from conrepair.faults.everywhere import everywhere
from conrepair.faults.precision.weights_in_int4 import FAULT as ONCE

__all__ = ["FAULT"]


FAULT = everywhere(ONCE)

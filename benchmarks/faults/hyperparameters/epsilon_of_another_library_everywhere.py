"""All normalizations have the epsilon that another library has by default."""

from __future__ import annotations

from benchmarks.faults.everywhere import everywhere
from benchmarks.faults.hyperparameters.epsilon_of_another_library import FAULT as ONCE

__all__ = ["FAULT"]


FAULT = everywhere(ONCE)

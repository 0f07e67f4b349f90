"""All scores of attention are divided by something else."""

from __future__ import annotations

from benchmarks.faults.everywhere import everywhere
from benchmarks.faults.hyperparameters.attention_scale_wrong import FAULT as ONCE

__all__ = ["FAULT"]


FAULT = everywhere(ONCE)

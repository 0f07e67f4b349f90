"""The most that can be asked for: what's beyond is a slip, and would fill the memory or never end."""

from __future__ import annotations

__all__ = ["MOST_GIGABYTES", "MOST_SAMPLES", "MOST_SECONDS", "MOST_SEED"]

MOST_GIGABYTES = 1_000_000
"""Of a limit of space: more than a disk has."""

MOST_SAMPLES = 1_000_000
"""Inputs that are drawn: each runs through every model, and its name, times and answers are held in memory."""

MOST_SECONDS = 1e7
"""Of a limit: 116 days; timers of the system end somewhere behind it."""

MOST_SEED = 2**63 - 1

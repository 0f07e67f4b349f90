"""Rules of faults of quantized activations, without names: what diagnoses say, and advice goes by."""

from __future__ import annotations

SATURATES = "calibrated on too small a range"
SHIFTED = "values saturate: the range lies elsewhere, as by another zero point"
OVERFLOWS = "values are beyond 65504, where float16 ends"
OTHER_GRID = "integers are read by another scale or zero point than they're written by"
BELOW_ZERO = "a range begins below zero, which stands for a ReLU"
CLIPPING = (SATURATES, SHIFTED)
"""Those of a range that doesn't hold its values."""
ZERO_POINTS = (OTHER_GRID, BELOW_ZERO)
"""Those that a zero point is at fault in."""

"""Rules of faults of quantized activations, without names: what diagnoses say, and advice goes by."""

from __future__ import annotations

SATURATES = "calibrated on too small a range"
SHIFTED = "values saturate: the quantization range is shifted, as by another zero point"
OVERFLOWS = "values are beyond 65504, the largest float16"
OTHER_GRID = "integers are read with another scale or zero point than they're written with"
BELOW_ZERO = "a quantization range that stands for a ReLU begins below zero"
CLIPPING = (SATURATES, SHIFTED)
"""Those of a range that doesn't hold its values."""
ZERO_POINTS = (OTHER_GRID, BELOW_ZERO)
"""Those that a zero point is at fault in."""

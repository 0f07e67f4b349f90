"""Scale and zero point of integers whose file doesn't say them, by the real numbers that they should stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.ground.data.tensor_spec import Quantization
from conrepair.ground.metrics.probabilities import looks_normalized

Array = npt.NDArray[Any]

NARROW = ("int8", "uint8", "int16", "uint16")
_SOFTMAX = (256, 255)  # steps of a softmax: TFLite's, and those of ONNX Runtime's quantizer
_LEAST = 0.5  # correlation of integers that stand for these numbers
_SUM_SLACK = 4  # steps that the sum of few classes may be off


def fitted_grid(real: Array, stored: Array) -> Quantization | None:
    """The scale and zero point by which integers are nearest to real numbers.

    Where these are probabilities, and the integers are such in a quantizer's usual range of 0 to 1, it's that range,
    whatever the difference; of other numbers it's a line.

    Args:
        real: The original's output.
        stored: Of the same shape.

    Returns:
        None where they don't stand for these numbers, whatever the scale.
    """
    if real.dtype.kind != "f" or real.shape != stored.shape or stored.dtype.name not in NARROW:
        return None
    if real.ndim == 2 and looks_normalized(real):
        total = float(np.median((stored.astype(np.int64) - np.iinfo(stored.dtype).min).sum(axis=1)))
        steps = min(_SOFTMAX, key=lambda known: abs(known - total))
        if abs(total - steps) <= max(_SUM_SLACK, stored.shape[1] / 4):
            return Quantization(1 / steps, int(np.iinfo(stored.dtype).min))
    return _line(np.asarray(real, np.float64).reshape(-1), stored.reshape(-1))


def _line(real: npt.NDArray[np.float64], stored: Array) -> Quantization | None:
    """By least squares; numbers at the ends of the type may have been cut off."""
    limits = np.iinfo(stored.dtype)
    inner = np.isfinite(real) & (stored > limits.min) & (stored < limits.max)
    real, held = real[inner], stored[inner].astype(np.float64)
    if len(real) < 2 or real.std() == 0 or held.std() == 0 or np.corrcoef(real, held)[0, 1] < _LEAST:
        return None
    steps, zero = np.polyfit(real, held, 1)
    return Quantization(float(1 / steps), int(np.clip(np.rint(zero), limits.min, limits.max)))


def grid_in_words(grid: Quantization) -> str:
    """A scale and a zero point: "scale 1/256 and zero point -128"."""
    steps = round(1 / grid.scale)
    scale = f"1/{steps}" if steps > 1 and 1 / steps == grid.scale else f"{grid.scale:.4g}"
    return f"scale {scale} and zero point {grid.zero_point}"

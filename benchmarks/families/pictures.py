"""Pictures that look like photos to a network: smooth, each of a colour of its own."""

from __future__ import annotations

import numpy as np

from benchmarks.families.architecture import Array

__all__ = ["MEAN", "STD", "pictures"]

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Of ImageNet's channels, of 0 to 1."""

_COARSE = 4  # pixels that others lie between


def pictures(
    generator: np.random.Generator, count: int, size: int, *, channels_last: bool = False, high: float = 1.0
) -> Array:
    """Draw pictures.

    Args:
        generator: Of the numbers.
        count: How many.
        size: Of each side.
        channels_last: (N, H, W, 3) in place of (N, 3, H, W).
        high: The brightest; the darkest is 0.
    """
    from scipy.ndimage import zoom

    coarse = generator.random((count, 3, _COARSE, _COARSE))
    smooth = zoom(coarse, (1, 1, size / _COARSE, size / _COARSE), order=1)
    colour, grain = generator.random((count, 3, 1, 1)), generator.random((count, 3, size, size))
    found = (high * (0.45 * smooth + 0.4 * colour + 0.15 * grain)).astype(np.float32)
    return np.ascontiguousarray(found.transpose(0, 2, 3, 1)) if channels_last else found

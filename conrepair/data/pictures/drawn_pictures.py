"""Pictures that are drawn: they vary slowly over the area, each in a colour of its own, as photos do."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from conrepair.data.pictures.resample import resize_bilinear

__all__ = ["draw_picture", "is_picture"]

_CHANNELS = {1, 3, 4}
_SMALLEST = 8  # pixels of a side
_COARSE = 5  # patches along a side, between which values change
_OF_COLOUR, _OF_PATCHES = 0.4, 0.5  # of the range; grain is the rest


def is_picture(shape: tuple[int, ...]) -> bool:
    """Whether a sample may be a picture.

    Args:
        shape: Without the batch: [channels, height, width] or [height, width, channels].
    """
    if len(shape) != 3 or _CHANNELS.isdisjoint({shape[0], shape[-1]}):
        return False
    return min(_sides(shape)) >= _SMALLEST


def draw_picture(generator: np.random.Generator, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
    """Draw one.

    Networks average noise away: deep in them, one picture of independent pixels is like another.

    Args:
        generator: Seeded.
        shape: As for `is_picture`.

    Returns:
        Portions of a range, 0 to 1.
    """
    height, width = _sides(shape)
    channels = shape[-1] if _is_last(shape) else shape[0]
    coarse = generator.random((_COARSE, _COARSE, channels), np.float32)
    colour, grain = (
        generator.random((1, 1, channels), np.float32),
        generator.random((height, width, channels), np.float32),
    )
    patches = resize_bilinear(coarse, height, width)
    picture = _OF_COLOUR * colour + _OF_PATCHES * patches + (1 - _OF_COLOUR - _OF_PATCHES) * grain
    return np.ascontiguousarray(picture if _is_last(shape) else picture.transpose(2, 0, 1), np.float32)


def _is_last(shape: tuple[int, ...]) -> bool:
    return shape[-1] in _CHANNELS


def _sides(shape: tuple[int, ...]) -> tuple[int, int]:
    height, width = shape[:2] if _is_last(shape) else shape[1:]
    return height, width

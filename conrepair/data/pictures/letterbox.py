"""Pictures that keep their proportions within a size, with zeros around them."""

from __future__ import annotations

import math

import numpy as np

__all__ = ["Inner", "place_within", "surround"]

Inner = tuple[int, int, int, int]
"""Height, width, top and left of the picture within the result."""


def place_within(height: int, width: int, size: tuple[int, int], *, as_tensorflow: bool) -> Inner:
    """Say how large a picture becomes within a size, and where it lies.

    Args:
        height: Of the picture.
        width: Of the picture.
        size: Height and width of the result.
        as_tensorflow: Round as ``tf.image.resize_with_pad`` does, else as ``PIL.ImageOps.pad``.
    """
    wanted_height, wanted_width = size
    if as_tensorflow:
        # float32, as there, with quotients in the same order.
        ratio = np.maximum(
            np.float32(width) / np.float32(wanted_width), np.float32(height) / np.float32(wanted_height)
        )
        exact = np.float32(height) / ratio, np.float32(width) / ratio
        top, left = (max(0, math.floor((side - part) / 2)) for side, part in zip(size, exact, strict=True))
        return max(1, math.floor(exact[0])), max(1, math.floor(exact[1])), top, left
    inner_height, inner_width = wanted_height, wanted_width
    if width / height > wanted_width / wanted_height:
        inner_height = max(1, round(height / width * wanted_width))
    elif width / height < wanted_width / wanted_height:
        inner_width = max(1, round(width / height * wanted_height))
    return (
        inner_height,
        inner_width,
        round((wanted_height - inner_height) / 2),
        round((wanted_width - inner_width) / 2),
    )


def surround(pixels: np.ndarray, inner: Inner, size: tuple[int, int]) -> np.ndarray:
    """Lay [h, w, C] into zeros of a size."""
    height, width, top, left = inner
    padded = np.zeros((*size, pixels.shape[2]), dtype=pixels.dtype)
    padded[top : top + height, left : left + width] = pixels
    return padded

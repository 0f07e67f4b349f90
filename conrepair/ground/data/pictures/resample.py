"""TensorFlow's resize of images, in numpy.

``tf.image.resize`` without antialiasing samples the image at half-pixel centres: result pixel i
lies at (i + 0.5) * source / target - 0.5. Bilinear reads two pixels per axis however much the
image shrinks, which is what models trained or exported with TensorFlow saw. Pillow's resize, in
contrast, averages all pixels under a result pixel.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt


def resize_bilinear(pixels: npt.NDArray[np.generic], height: int, width: int) -> np.ndarray:
    """Resizes as ``tf.image.resize(pixels, (height, width), "bilinear")``.

    Args:
        pixels: Numbers of shape [H, W, C], none of them 0.
        height: Rows of the result.
        width: Columns of the result.

    Returns:
        A float32 array of shape [height, width, C].
    """
    top, bottom, down = _neighbours(pixels.shape[0], height)
    left, right, across = _neighbours(pixels.shape[1], width)
    across = across[np.newaxis, :, np.newaxis]
    # Only the rows that a result row reads: of a large photo, a fraction.
    upper = _lerp_columns(pixels[top], left, right, across)
    lower = _lerp_columns(pixels[bottom], left, right, across)
    lower -= upper
    lower *= down[:, np.newaxis, np.newaxis]
    lower += upper
    return lower


def resize_nearest(pixels: npt.NDArray[np.generic], height: int, width: int) -> np.ndarray:
    """Resizes as ``tf.image.resize(pixels, (height, width), "nearest")``.

    Args:
        pixels: Numbers of shape [H, W, C], none of them 0.
        height: Rows of the result.
        width: Columns of the result.

    Returns:
        A float32 array of shape [height, width, C].
    """
    rows = _nearest(pixels.shape[0], height)
    columns = _nearest(pixels.shape[1], width)
    return pixels[rows[:, np.newaxis], columns].astype(np.float32)


def _lerp_columns(
    rows: npt.NDArray[np.generic],
    left: npt.NDArray[np.intp],
    right: npt.NDArray[np.intp],
    weight: npt.NDArray[np.float32],
) -> npt.NDArray[np.float32]:
    """Mixes two columns of [h, W, C] into each of [h, w, C], in TensorFlow's order of steps."""
    start = rows[:, left].astype(np.float32)
    mixed = rows[:, right].astype(np.float32)
    mixed -= start
    mixed *= weight
    mixed += start
    return mixed


def _neighbours(
    source: int, target: int
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], npt.NDArray[np.float32]]:
    """Returns, for each of the target's pixels, its two source pixels and the second's weight."""
    # All in float32, as in TensorFlow's kernel: float64 picks other pixels at some sizes.
    scale = np.float32(source) / np.float32(target)
    half = np.float32(0.5)
    position = (np.arange(target, dtype=np.float32) + half) * scale - half
    floor = np.floor(position)
    first = np.clip(floor.astype(np.intp), 0, source - 1)
    second = np.clip(np.ceil(position).astype(np.intp), 0, source - 1)
    return first, second, position - floor


def _nearest(source: int, target: int) -> npt.NDArray[np.intp]:
    """Returns the source pixel of each of the target's pixels."""
    scale = np.float32(source) / np.float32(target)
    position = (np.arange(target, dtype=np.float32) + np.float32(0.5)) * scale
    indices: npt.NDArray[np.intp] = np.floor(position).astype(np.intp)
    return np.minimum(indices, source - 1)


_Inner = tuple[int, int, int, int]
"""Height, width, top and left of the picture within the result."""


def place_within(height: int, width: int, size: tuple[int, int], *, as_tensorflow: bool) -> _Inner:
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


def surround(pixels: np.ndarray, inner: _Inner, size: tuple[int, int]) -> np.ndarray:
    """Lay [h, w, C] into zeros of a size."""
    height, width, top, left = inner
    padded = np.zeros((*size, pixels.shape[2]), dtype=pixels.dtype)
    padded[top : top + height, left : left + width] = pixels
    return padded

"""Reads one photo file as RGB pixels.

Every mode Pillow reads ends as 8-bit RGB, upright:

* transparency (RGBA, LA, PA, or a transparent colour) is dropped, not blended, as
  ``PIL.Image.convert("RGB")`` does and with it the loaders of torchvision and Keras;
* grey values of 16 bits are scaled by their range (65535 becomes 255) instead of being clipped;
* the EXIF orientation is applied, which the loaders of torchvision and Keras leave to the caller;
* of an animation, the first frame counts.
"""

from __future__ import annotations

import functools
import os
import struct
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps, UnidentifiedImageError

from conrepair.ground.runtime.errors import DataError

# Formats that Pillow names but that it can't decode alone: EPS starts Ghostscript (which we don't
# want a file named .jpg to do), WMF needs Windows, and the others are stubs for other libraries.
_NOT_PHOTOS = frozenset({"BUFR", "EPS", "GRIB", "HDF5", "MPEG", "WMF"})

# What Pillow's decoders raise on damaged files; most of it is not documented.
_DECODER_ERRORS = (
    OSError,  # includes UnidentifiedImageError
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    NotImplementedError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
    zlib.error,
)


@functools.cache
def photo_formats() -> tuple[str, ...]:
    """Returns the names of the formats that Pillow decodes without other programs, sorted."""
    Image.init()
    return tuple(sorted(set(Image.OPEN) - _NOT_PHOTOS))


@functools.cache
def photo_suffixes() -> frozenset[str]:
    """Returns the file suffixes of :func:`photo_formats`, in lower case with their dot."""
    known = Image.registered_extensions()
    formats = frozenset(photo_formats())
    return frozenset(suffix.lower() for suffix, name in known.items() if name in formats)


def decode_picture(path: str | os.PathLike[str]) -> Image.Image:
    """Reads a photo as an upright RGB picture of Pillow's, which resizes it without copies.

    Grey photos of 16 bits (modes ``I;16`` and its variants) are divided by 257 and rounded. Mode
    ``I`` (32-bit integers, in practice 16-bit values) is treated alike if a value exceeds 255, and
    is taken as 8-bit values if none does. Mode ``F`` is scaled from 0..1 to 0..255 if all values
    lie within 0..1, and is else clipped to 0..255; what is not a number becomes 0.

    Args:
        path: The file. Its content decides the format, not its suffix.

    Returns:
        A picture of mode RGB.

    Raises:
        DataError: The file is missing, unreadable, no image, damaged, cut off, or so large that
            it may be a decompression bomb.
    """
    file = Path(path)
    try:
        with Image.open(file, formats=photo_formats()) as image:
            image.load()
            return _as_rgb(_upright(image))
    except Image.DecompressionBombError as error:
        raise DataError(
            f"Photo {file} was not decoded: {error}. A small file that unpacks to this many pixels "
            "may be an attack; if you trust the photo, save it at a smaller size."
        ) from error
    except MemoryError as error:
        raise DataError(
            f"Photo {file} was not decoded: its pixels don't fit in memory. Save it at a smaller "
            "size, or remove it from the folder."
        ) from error
    except _DECODER_ERRORS as error:
        raise DataError(_explain(file, error)) from error


def _explain(file: Path, error: BaseException) -> str:
    """Says why a file could not be decoded, and what to do about it."""
    if isinstance(error, FileNotFoundError):
        return f"Photo {file} doesn't exist. Check the path."
    if isinstance(error, IsADirectoryError) or file.is_dir():
        return f"Photo {file} is a folder. Name a photo file."
    if isinstance(error, PermissionError):
        return f"Photo {file} can't be read: permission denied. Make the file readable."
    if file.is_file() and file.stat().st_size == 0:
        return f"Photo {file} is an empty file. Copy it again, or remove it from the folder."
    if isinstance(error, UnidentifiedImageError):
        return (
            f"Photo {file} is not an image: its content is in no format that Pillow decodes, "
            "whatever its name says. Remove it from the folder, or convert it to PNG or JPEG."
        )
    return (
        f"Photo {file} is damaged or cut off: {error or type(error).__name__}. Copy it again from "
        "its source, or remove it from the folder."
    )


def _upright(image: Image.Image) -> Image.Image:
    """Applies the EXIF orientation, or none if the EXIF data is damaged."""
    try:
        ImageOps.exif_transpose(image, in_place=True)
    except _DECODER_ERRORS:
        # The pixels are fine; other viewers also show such a photo as it is stored.
        return image
    return image


def _as_rgb(image: Image.Image) -> Image.Image:
    """Converts a loaded image of any mode to RGB."""
    if image.mode == "RGB":
        return image
    if image.mode.startswith("I;16"):
        return _grey_to_rgb(_from_16_bits(np.asarray(image)))
    if image.mode == "I":
        return _grey_to_rgb(_from_integers(np.asarray(image)))
    if image.mode == "F":
        return _grey_to_rgb(_from_floats(np.asarray(image)))
    if image.mode == "La":  # grey with premultiplied alpha converts only to LA
        image = image.convert("LA")
    # Alpha is dropped below; without this Pillow warns about it for palettes.
    image.info.pop("transparency", None)
    return image.convert("RGB")


def _grey_to_rgb(grey: npt.NDArray[np.uint8]) -> Image.Image:
    """Makes an RGB picture of [height, width]."""
    return Image.fromarray(grey).convert("RGB")


def _from_16_bits(grey: npt.NDArray[np.integer]) -> npt.NDArray[np.uint8]:
    """Scales 0..65535 to 0..255 by value / 257, rounded to the nearest."""
    # 257 is odd, so that no value lies half-way: integer arithmetic rounds without ambiguity.
    rounded: npt.NDArray[np.uint8] = ((grey.astype(np.uint32) + 128) // 257).astype(np.uint8)
    return rounded


def _from_integers(grey: npt.NDArray[np.integer]) -> npt.NDArray[np.uint8]:
    """Takes values up to 255 as they are, and else as 16-bit values; clips what lies outside."""
    if grey.max(initial=0) > 255:
        return _from_16_bits(np.clip(grey, 0, 65535))
    clipped: npt.NDArray[np.uint8] = np.clip(grey, 0, 255).astype(np.uint8)
    return clipped


def _from_floats(grey: npt.NDArray[np.floating]) -> npt.NDArray[np.uint8]:
    """Scales values within 0..1 to 0..255, clips others to 0..255; rounds to the nearest."""
    values = np.nan_to_num(grey.astype(np.float64), nan=0.0, posinf=255.0, neginf=0.0)
    if values.min(initial=0.0) >= 0.0 and values.max(initial=0.0) <= 1.0:
        values *= 255.0
    return np.rint(np.clip(values, 0.0, 255.0)).astype(np.uint8)

"""Recipes: how a decoded photo becomes a model's input, as data.

A recipe has two parts. The spatial part (size, fit, interpolation) turns a photo into a small
picture; it is by far the more expensive one, and models that agree on it share its result. The
numeric part (channels, divisor, mean, std) turns a batch of such pictures into the numbers that a
model takes.
"""

from __future__ import annotations

import dataclasses
import json
import math
import typing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from conrepair.ground.data.pictures.resample import place_within, resize_bilinear, resize_nearest, surround
from conrepair.ground.runtime.errors import DataError

if TYPE_CHECKING:
    from PIL import Image

Fit = Literal["stretch", "crop", "pad", "none"]
Interpolation = Literal["nearest", "bilinear", "bicubic", "lanczos", "box", "hamming"]
Resampler = Literal["pillow", "tensorflow"]
Channels = Literal["rgb", "bgr", "grey"]
Layout = Literal["NCHW", "NHWC"]

_TENSORFLOW_RESIZES = {"bilinear": resize_bilinear, "nearest": resize_nearest}

# A crop first resizes the whole photo: a strip of 1 x 5000 pixels would become 256 x 1280000.
# The bound is the one above which Pillow refuses to decode.
_MOST_PIXELS = 2 * (1024 * 1024 * 1024 // 4 // 3)


@dataclasses.dataclass(frozen=True)
class SpatialRecipe:
    """The geometric part of a recipe; hashable, and plain JSON by ``dataclasses.asdict``.

    Attributes:
        size: Height and width of the result; None (with fit "none" only) is the photo's own.
        fit: See :class:`Recipe`.
        resize_to: The shorter side before the centre crop; None unless fit is "crop".
        interpolation: See :class:`Recipe`.
        resampler: See :class:`Recipe`.
    """

    size: tuple[int, int] | None
    fit: Fit
    resize_to: int | None
    interpolation: Interpolation
    resampler: Resampler


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How a photo becomes a model's input.

    Attributes:
        name: What reports call it.
        size: Height and width of the result; None follows the model's input (see `for_size`).
        fit: "stretch" resizes to the size whatever the photo's proportions; "crop" resizes the
            shorter side to `resize_to` and cuts the centre out; "pad" resizes it to lie within the
            size and puts zeros around it; "none" takes the photo as it is.
        resize_to: For "crop", the shorter side before the cut; None is
            round(min(size) / crop_ratio).
        crop_ratio: For "crop" without `resize_to`, the share of the shorter side that remains.
        interpolation: How pixels are resampled.
        resampler: "pillow" gives uint8 and averages when it shrinks; "tensorflow" gives float32,
            doesn't average, and knows only nearest and bilinear.
        channels: Order of the colours, or "grey" for luma alone.
        divisor: The pixels, 0 to 255, are first divided by this,
        mean: then this is subtracted (one number, or one per channel in the order of `channels`),
        std: and then they are divided by this (likewise).
        layout: Order of the axes; None follows the model.

    Raises:
        ValueError: An attribute has a value that is not allowed; the message names both.
    """

    name: str
    size: tuple[int, int] | None = None
    fit: Fit = "stretch"
    resize_to: int | None = None
    crop_ratio: float = 0.875
    interpolation: Interpolation = "bilinear"
    resampler: Resampler = "pillow"
    channels: Channels = "rgb"
    divisor: float = 1.0
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    layout: Layout | None = None

    def __post_init__(self) -> None:
        # Recipes come from JSON, which has lists; only tuples hash.
        for field in ("size", "mean", "std"):
            value = getattr(self, field)
            if isinstance(value, list):
                object.__setattr__(self, field, tuple(value))
        self._check_name()
        self._check_choices()
        self._check_geometry()
        self._check_numbers()

    @property
    def spatial(self) -> SpatialRecipe:
        """The geometric part, with `resize_to` worked out.

        Raises:
            ValueError: The size is not known yet and the fit needs it: call `for_size` first.
        """
        if self.size is None and self.fit != "none":
            raise ValueError(
                f"Recipe {self.name!r} has no size: it follows the model's input. Call for_size(height, width) first."
            )
        resize_to = None
        if self.fit == "crop" and self.size is not None:
            resize_to = self.resize_to or max(1, round(min(self.size) / self.crop_ratio))
        return SpatialRecipe(self.size, self.fit, resize_to, self.interpolation, self.resampler)

    def for_size(self, height: int, width: int) -> Recipe:
        """Returns this recipe with a size: its own if it has one, else the one given.

        Args:
            height: Rows of the model's input.
            width: Columns of the model's input.

        Raises:
            ValueError: The height or width is not positive.
        """
        if self.size is not None:
            return self
        return dataclasses.replace(self, size=(height, width))

    def _check_name(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"name must be a text that is not empty, but is {self.name!r}.")

    def _check_choices(self) -> None:
        self._check_choice("fit", Fit)
        self._check_choice("interpolation", Interpolation)
        self._check_choice("resampler", Resampler)
        self._check_choice("channels", Channels)
        if self.layout is not None:
            self._check_choice("layout", Layout)
        if self.resampler == "tensorflow" and self.interpolation not in _TENSORFLOW_RESIZES:
            self._refuse("interpolation", "nearest or bilinear with the resampler tensorflow")

    def _check_choice(self, field: str, choices: object) -> None:
        allowed = typing.get_args(choices)
        if getattr(self, field) not in allowed:
            self._refuse(field, "one of " + ", ".join(allowed))

    def _check_geometry(self) -> None:
        if self.size is not None and not (
            isinstance(self.size, tuple)
            and len(self.size) == 2
            and all(_is_positive_integer(side) for side in self.size)
        ):
            self._refuse("size", "two positive integers (height, width), or none")
        if self.resize_to is not None and not _is_positive_integer(self.resize_to):
            self._refuse("resize_to", "a positive integer, or none")
        if not (_is_finite(self.crop_ratio) and 0.0 < self.crop_ratio <= 1.0):
            self._refuse("crop_ratio", "a number above 0 and up to 1")

    def _check_numbers(self) -> None:
        if not _is_finite(self.divisor) or not _fits_divisor(self.divisor):
            self._refuse("divisor", "a finite number other than 0")
        lengths = (1,) if self.channels == "grey" else (1, 3)
        wanted = " or ".join(str(length) for length in lengths)
        for field in ("mean", "std"):
            value = getattr(self, field)
            if not (
                isinstance(value, tuple) and len(value) in lengths and all(_is_finite(number) for number in value)
            ):
                self._refuse(field, f"{wanted} finite number(s) with the channels {self.channels}")
        if not all(_fits_divisor(number) for number in self.std):
            self._refuse("std", "numbers other than 0")

    def _refuse(self, field: str, allowed: str) -> typing.NoReturn:
        raise ValueError(f"Recipe {self.name!r}: {field} must be {allowed}, but is {getattr(self, field)!r}.")


def apply_spatial(
    spatial: SpatialRecipe, picture: Image.Image | npt.NDArray[np.uint8]
) -> npt.NDArray[np.uint8] | npt.NDArray[np.float32]:
    """Applies the geometric part of a recipe to one photo.

    Args:
        spatial: The geometric part.
        picture: RGB, of Pillow's, or uint8 of shape [H, W, 3], none of them 0.

    Returns:
        RGB of shape [h, w, 3], C-contiguous: uint8 from Pillow, float32 (0 to 255) from
        TensorFlow's resampler. It may be `picture` itself if nothing had to change.

    Raises:
        DataError: The photo is not resized (fit "none") but has another size than the recipe, or
            is so narrow that resizing its shorter side would give an enormous picture.
        ValueError: `picture` has another mode, shape or dtype.
    """
    width, height = _size_of(picture)
    if spatial.fit == "none" or spatial.size is None:
        _check_own_size(spatial, height, width)
        return _resize(spatial, picture, height, width)
    if spatial.fit == "stretch":
        return _resize(spatial, picture, *spatial.size)
    if spatial.fit == "pad":
        inner = place_within(height, width, spatial.size, as_tensorflow=spatial.resampler == "tensorflow")
        return surround(_resize(spatial, picture, *inner[:2]), inner, spatial.size)
    resized = _resize(spatial, picture, *_size_before_crop(spatial, height, width))
    return np.ascontiguousarray(_crop_centre(resized, *spatial.size))


def apply_numeric(
    recipe: Recipe, batch: npt.NDArray[np.uint8] | npt.NDArray[np.float32], layout: Layout
) -> npt.NDArray[np.float32]:
    """Turns pictures into what a model takes: ((x / divisor) - mean) / std, in float32.

    The steps are carried out in this order, each rounded to float32, so that the result equals
    those of torchvision and Keras to the bit; steps that change nothing are left out.

    Args:
        recipe: The recipe; its spatial part and its own `layout` play no role here.
        batch: RGB, uint8 or float32 of shape [N, h, w, 3].
        layout: The order of the result's axes.

    Returns:
        A new float32 array, C-contiguous, of shape [N, C, h, w] or [N, h, w, C], where C is 1 for
        grey and else 3.

    Raises:
        ValueError: `batch` has another shape or dtype, or the layout is unknown.
    """
    if batch.ndim != 4 or batch.shape[3] != 3 or batch.dtype not in (np.uint8, np.float32):
        raise ValueError(
            f"batch must be uint8 or float32 [photos, height, width, 3], but is {batch.dtype} {batch.shape}."
        )
    if layout not in typing.get_args(Layout):
        raise ValueError(f"layout must be NCHW or NHWC, but is {layout!r}.")
    ordered = _order_channels(recipe.channels, batch)
    if layout == "NCHW":
        ordered = ordered.transpose(0, 3, 1, 2)
    # One pass per step over the whole batch: measured at 224 x 224, this is as fast as or faster
    # than 256-entry lookup tables per channel (0.11 against 0.15 ms per photo).
    result = np.array(ordered, dtype=np.float32, order="C")
    rows = _rows(result, layout)
    if recipe.divisor != 1.0:
        rows /= np.float32(recipe.divisor)
    if any(recipe.mean):
        rows -= _per_channel(recipe.mean, result.shape, layout)
    if any(number != 1.0 for number in recipe.std):
        rows /= _per_channel(recipe.std, result.shape, layout)
    return result


def _is_positive_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_finite(value: object) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and abs(value) <= float(np.finfo(np.float32).max)
    )


def _fits_divisor(value: float) -> bool:
    """Says whether a number is still not 0 as the float32 that we divide by."""
    return bool(np.float32(value) != 0.0)


def _check_own_size(spatial: SpatialRecipe, height: int, width: int) -> None:
    """Refuses a photo that is not resized and doesn't have the size that is wanted."""
    if spatial.size is not None and spatial.size != (height, width):
        wanted_height, wanted_width = spatial.size
        raise DataError(
            f"A photo is {width} pixels wide and {height} high, but the model takes "
            f"{wanted_width} x {wanted_height} and the recipe doesn't resize (fit 'none'). Use "
            "photos of that size, or a recipe with the fit 'crop' or 'stretch'."
        )


def _size_before_crop(spatial: SpatialRecipe, height: int, width: int) -> tuple[int, int]:
    """Returns height and width after the shorter side was resized, as torchvision rounds them."""
    if spatial.resize_to is None:
        raise ValueError("A spatial recipe with the fit 'crop' needs resize_to.")
    long = int(spatial.resize_to * max(height, width) / min(height, width))
    if spatial.resize_to * long > _MOST_PIXELS:
        raise DataError(
            f"A photo is {width} pixels wide and {height} high: with its shorter side resized to "
            f"{spatial.resize_to}, its longer one would be {long} pixels. Remove the photo, crop "
            "it by hand, or use a recipe with the fit 'stretch'."
        )
    return (long, spatial.resize_to) if width <= height else (spatial.resize_to, long)


def _resize(
    spatial: SpatialRecipe, picture: Image.Image | npt.NDArray[np.uint8], height: int, width: int
) -> npt.NDArray[np.uint8] | npt.NDArray[np.float32]:
    """Resizes [H, W, 3] to [height, width, 3] with the recipe's resampler."""
    unchanged = _size_of(picture) == (width, height)
    if spatial.resampler == "tensorflow":
        pixels = np.asarray(picture)
        if unchanged:
            return pixels.astype(np.float32)
        return _TENSORFLOW_RESIZES[spatial.interpolation](pixels, height, width)
    if unchanged:
        return np.ascontiguousarray(picture)
    from PIL import Image  # recipes are read where no photo is

    if not isinstance(picture, Image.Image):
        picture = Image.fromarray(picture)
    return np.asarray(picture.resize((width, height), Image.Resampling[spatial.interpolation.upper()]))


def _size_of(picture: Image.Image | npt.NDArray[np.uint8]) -> tuple[int, int]:
    """Returns width and height of an RGB picture."""
    if not isinstance(picture, np.ndarray):
        if picture.mode != "RGB":
            raise ValueError(f"a picture must be RGB, not {picture.mode}.")
        return picture.size
    if picture.ndim != 3 or picture.shape[2] != 3 or picture.dtype != np.uint8 or not picture.size:
        raise ValueError(f"pixels must be uint8 [height, width, 3], but are {picture.dtype} {picture.shape}.")
    return picture.shape[1], picture.shape[0]


def _crop_centre(pixels: np.ndarray, height: int, width: int) -> np.ndarray:
    """Cuts the centre out of [H, W, C], or surrounds it by zeros where it is too small.

    The offsets are torchvision's `center_crop`, which rounds half-way offsets to even when it cuts
    and towards 0 when it pads.
    """
    rows, columns = pixels.shape[:2]
    top = _offset(rows, height)
    left = _offset(columns, width)
    if rows >= height and columns >= width:
        return pixels[top : top + height, left : left + width]
    padded = np.zeros((height, width, *pixels.shape[2:]), dtype=pixels.dtype)
    inner = pixels[max(top, 0) : max(top, 0) + height, max(left, 0) : max(left, 0) + width]
    above, before = max(-top, 0), max(-left, 0)
    padded[above : above + inner.shape[0], before : before + inner.shape[1]] = inner
    return padded


def _offset(available: int, wanted: int) -> int:
    """Returns where the crop starts along one axis; negative where zeros come first."""
    if wanted > available:
        return -((wanted - available) // 2)
    return round((available - wanted) / 2.0)


def _order_channels(channels: Channels, batch: np.ndarray) -> np.ndarray:
    """Reorders or merges the last axis of RGB pixels [N, h, w, 3]."""
    if channels == "bgr":
        return batch[..., ::-1]
    if channels == "grey":
        return _luma(batch)[..., np.newaxis]
    return batch


def _luma(batch: np.ndarray) -> np.ndarray:
    """Returns the ITU-R 601 luma [N, h, w] of RGB pixels, in their own dtype.

    For uint8 it equals Pillow's ``convert("L")``; float32 is not rounded.
    """
    if batch.dtype != np.uint8:
        return _mix(batch, np.array((0.299, 0.587, 0.114), dtype=np.float32))
    # Pillow's weights: fixed-point with 16 bits, and 0x8000 for rounding.
    mixed = _mix(batch, np.array((19595, 38470, 7471), dtype=np.uint32))
    mixed += 0x8000
    mixed >>= 16
    return mixed.astype(np.uint8)


def _mix(batch: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighs and sums the last axis of [N, h, w, 3], in the dtype of the weights."""
    mixed: np.ndarray = np.multiply(batch[..., 0], weights[0], dtype=weights.dtype)
    for channel in (1, 2):
        mixed += np.multiply(batch[..., channel], weights[channel], dtype=weights.dtype)
    return mixed


def _rows(result: np.ndarray, layout: Layout) -> np.ndarray:
    """Views [N, h, w, C] as [N, h, w * C], and leaves [N, C, h, w]; see `_per_channel`."""
    if layout == "NCHW":
        return result
    photos, height, width, channels = result.shape
    return result.reshape(photos, height, width * channels)


def _per_channel(values: tuple[float, ...], shape: tuple[int, ...], layout: Layout) -> npt.NDArray[np.float32]:
    """Shapes one number per channel so that it broadcasts against `_rows`."""
    numbers = np.array(values, dtype=np.float32)
    if len(values) == 1:
        return numbers
    if layout == "NCHW":
        return numbers[:, np.newaxis, np.newaxis]
    # Broadcasting over a last axis of 3 makes numpy's inner loop 3 long: five times slower.
    return np.tile(numbers, shape[2])


# A recipe in a file of its own, in the words of a configuration.


_BASE = "raw"


def recipe_fields(recipe: Recipe) -> dict[str, Any]:
    """The fields of a recipe, as `recipe` of a model in a configuration takes them.

    Args:
        recipe: Any.
    """
    fields = {name: value for name, value in dataclasses.asdict(recipe).items() if value is not None}
    return {"base": _BASE} | {
        name: list(value) if isinstance(value, tuple) else value for name, value in fields.items() if name != "name"
    }


def write_recipe(recipe: Recipe, path: Path) -> None:
    """Write a recipe so that `--target-recipe FILE` and a configuration take it.

    Args:
        recipe: Any.
        path: Of the JSON file.
    """
    path.write_text(json.dumps(recipe_fields(recipe), indent=2) + "\n", encoding="utf-8")

"""Photos in the geometries that a search of recipes asks for, each decoded and resized once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from conrepair.ground.data.pictures.decode import decode_picture
from conrepair.ground.data.pictures.recipe import SpatialRecipe, apply_spatial
from conrepair.ground.runtime.errors import DataError

Photo = Path | npt.NDArray[np.uint8]
"""A file, or RGB pixels of shape [height, width, 3]."""

_KEPT_BYTES = 1 << 28  # of decoded photos, and again of resized ones
_LOOKED_AT = 8  # photos among which the telling ones are chosen
_THUMBNAIL = 32


class PhotoPixels:
    """Photos, decoded and resized on demand.

    Args:
        photos: At least one.

    Raises:
        DataError: if there is none.
    """

    def __init__(self, photos: Sequence[Photo]) -> None:
        if not photos:
            raise DataError("a search of recipes needs photos; give at least one.")
        self._photos = list(photos)
        self._pictures: dict[int, Image.Image] = {}
        self._resized: dict[tuple[int, SpatialRecipe], npt.NDArray[Any]] = {}
        self._picture_bytes = 0
        self._resized_bytes = 0

    def __len__(self) -> int:
        """The number of photos."""
        return len(self._photos)

    def telling(self, count: int) -> list[int]:
        """The photos that tell recipes apart best, in order.

        A square photo can't tell a crop from a stretch, nor a grey one RGB from BGR.

        Args:
            count: How many; fewer if there aren't as many.
        """
        looked_at = range(min(len(self), max(_LOOKED_AT, count)))
        worth = {index: _worth(self._picture(index)) for index in looked_at}
        best = sorted(looked_at, key=lambda index: (-worth[index], index))[:count]
        return sorted(best)

    def rows(self, spatial: SpatialRecipe, indices: Sequence[int]) -> npt.NDArray[Any]:
        """Photos in one geometry: uint8 or float32 of shape [len(indices), height, width, 3].

        Raises:
            DataError: if a photo can't be decoded or doesn't fit the geometry.
        """
        return np.stack([self._row(spatial, index) for index in indices])

    def _row(self, spatial: SpatialRecipe, index: int) -> npt.NDArray[Any]:
        row = self._resized.get((index, spatial))
        if row is None:
            row = apply_spatial(spatial, self._picture(index))
            if self._resized_bytes + row.nbytes <= _KEPT_BYTES:
                self._resized_bytes += row.nbytes
                self._resized[index, spatial] = row
        return row

    def _picture(self, index: int) -> Image.Image:
        picture = self._pictures.get(index)
        if picture is None:
            photo = self._photos[index]
            picture = decode_picture(photo) if isinstance(photo, Path) else Image.fromarray(photo)
            size = 3 * picture.width * picture.height
            if self._picture_bytes + size <= _KEPT_BYTES:
                self._picture_bytes += size
                self._pictures[index] = picture
        return picture


def _worth(picture: Image.Image) -> float:
    """Grows with how oblong a photo is and with the mean distance of its red from its blue."""
    oblongness = 0.05 + abs(math.log(picture.width / picture.height))
    pixels = np.asarray(picture.resize((_THUMBNAIL, _THUMBNAIL), Image.Resampling.NEAREST), dtype=np.float64)
    return oblongness * (1.0 + float(np.abs(pixels[..., 0] - pixels[..., 2]).mean()))

"""Feeds that a recipe makes of photos for a target's input, in the arrangements that a target may take by mistake."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from PIL import Image

from conrepair.ground.data.binding import image_layout
from conrepair.ground.data.feeds import Feeds
from conrepair.ground.data.pictures.decode import decode_picture
from conrepair.ground.data.pictures.recipe import Layout, Recipe, SpatialRecipe, apply_numeric, apply_spatial
from conrepair.ground.data.tensor_spec import TensorSpec
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
            raise DataError("searching a recipe needs photos: give at least one.")
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


Array = npt.NDArray[Any]

RunTarget = Callable[[Feeds], Mapping[str, Array]]
"""Runs the target on one batch of named feeds and gives its named outputs."""

Arrangement = Literal[
    "as it is",
    "height and width exchanged",
    "upside down",
    "reshaped instead of transposed",
    "transposed after a reshape",
]
"""How a finished picture is fed. The last two undo each other: the bytes of one layout read as the other's."""

ARRANGEMENTS: tuple[Arrangement, ...] = get_args(Arrangement)

_BATCH = 8


class PhotoFeeds:
    """Makes feeds from photos, and counts what running them costs.

    Args:
        run_target: See `RunTarget`.
        photos: In the geometries that are asked for.
        target_input: The target's only input.
        start: Gives the size where the input's is open, and the layout where the input's can't be told.

    Attributes:
        size: Height and width of the input.
        channels: 1 or 3.
        runs: How often the target was run.

    Raises:
        DataError: if the input doesn't take photos, or its size isn't known.
    """

    def __init__(self, run_target: RunTarget, photos: PhotoPixels, target_input: TensorSpec, start: Recipe) -> None:
        self.photos = photos
        self.runs = 0
        self._run_target = run_target
        self._spec = target_input
        self._layout = _layout_of(target_input, start)
        self.size = _size_of(target_input, self._layout, start)
        channels = target_input.shape[1 if self._layout == "NCHW" else 3]
        self.channels = 1 if channels == 1 else 3

    def arrangements(self) -> tuple[Arrangement, ...]:
        """Those that give the input its shape."""
        square = self.size[0] == self.size[1]
        return tuple(item for item in ARRANGEMENTS if square or item != "height and width exchanged")

    def array(self, recipe: Recipe, arrangement: Arrangement, photos: Sequence[int]) -> npt.NDArray[np.float32]:
        """What the input is fed with: float32 [photos, C, H, W] or [photos, H, W, C]."""
        rows = self.photos.rows(recipe.for_size(*self.size).spatial, photos)
        if arrangement == "height and width exchanged":
            rows = rows.swapaxes(1, 2)
        elif arrangement == "upside down":
            rows = rows[:, ::-1]
        result = apply_numeric(recipe, rows, self._layout)
        if arrangement == "reshaped instead of transposed":
            other: Layout = "NHWC" if self._layout == "NCHW" else "NCHW"
            return apply_numeric(recipe, rows, other).reshape(result.shape)
        if arrangement == "transposed after a reshape":
            count, height, width = rows.shape[:3]
            if self._layout == "NCHW":
                return result.reshape(count, height, width, -1).transpose(0, 3, 1, 2)
            return result.reshape(count, -1, height, width).transpose(0, 2, 3, 1)
        return result

    def outputs(self, array: npt.NDArray[np.float32]) -> dict[str, Array]:
        """Runs the target, in batches of its own size where it has a fixed one.

        Args:
            array: Of `array`.

        Returns:
            Its outputs, photos first.
        """
        return joined([self._run(batch) for batch in self._batches(array)])

    def _batches(self, array: npt.NDArray[np.float32]) -> Iterator[npt.NDArray[np.float32]]:
        size = self._spec.shape[0] if isinstance(self._spec.shape[0], int) else _BATCH
        for start in range(0, len(array), size):
            yield array[start : start + size]

    def _run(self, batch: npt.NDArray[np.float32]) -> dict[str, Array]:
        self.runs += 1
        fixed, valid = self._spec.shape[0], len(batch)
        if isinstance(fixed, int) and valid < fixed:
            batch = np.concatenate([batch, np.repeat(batch[-1:], fixed - valid, axis=0)])
        outputs = self._run_target({self._spec.name: batch})
        return {name: np.asarray(output)[:valid] for name, output in outputs.items()}


def joined(parts: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """Outputs of several batches, one behind the other."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _layout_of(spec: TensorSpec, start: Recipe) -> Layout:
    layout = image_layout(spec) or (start.layout if len(spec.shape) == 4 else None)
    if layout == "NCHW":
        return "NCHW"
    if layout == "NHWC":
        return "NHWC"
    raise DataError(
        f"input {spec} takes no photos, or its layout isn't known: declare its layout, or that of the recipe."
    )


def _size_of(spec: TensorSpec, layout: Layout, start: Recipe) -> tuple[int, int]:
    height, width = spec.shape[2:] if layout == "NCHW" else spec.shape[1:3]
    if isinstance(height, int) and isinstance(width, int):
        return height, width
    if start.size is not None:
        return start.size
    raise DataError(f"the size of input {spec} is open; declare it, or that of the recipe.")


# What a search of recipes tries, gives and may cost.


@dataclass(frozen=True)
class Budget:
    """What a search may cost; the confirmation of the best on all photos comes on top.

    Attributes:
        runs: Runs of the target.
        seconds: Wall time.
    """

    runs: int = 1000
    seconds: float = math.inf


@dataclass(frozen=True)
class RecipeCandidate:
    """A recipe that was tried.

    Attributes:
        recipe: With its size.
        arrangement: How the finished picture is fed: as it is, or as a target takes it that has its axes wrong.
        error: Of the target's answers under it, relative.
        agreement: Share of the photos with the wanted best class; None where outputs aren't classes.
        photos: How many photos it was judged on.
        fitted: Its numbers are of no name but were fitted to the answers.
    """

    recipe: Recipe
    arrangement: Arrangement = "as it is"
    error: float = math.inf
    agreement: float | None = None
    photos: int = 0
    fitted: bool = False


@dataclass(frozen=True)
class RecipeSearch:
    """The result of a search of recipes.

    Attributes:
        found: The first candidate explains the answers: its error is down to rounding; or it's another recipe than
            the start, none that was fitted, and its error is small and below all others' by a clear margin.
        candidates: Best first; those judged on all photos before the others.
        start: The recipe that the search began with, on all photos.
        changes: What the best does that the start doesn't, in words; empty when the start is the best.
        evidence: In words.
        runs: How often the target was run.
        complete: The search wasn't cut off by its budget.
    """

    found: bool
    candidates: tuple[RecipeCandidate, ...]
    start: RecipeCandidate
    changes: tuple[str, ...]
    evidence: str
    runs: int
    complete: bool

    @property
    def best(self) -> RecipeCandidate:
        """The first of the candidates."""
        return self.candidates[0]

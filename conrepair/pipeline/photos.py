"""Prepare the photos of a run: once for every geometry, from the store when an earlier run did it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from conrepair.data.feeds import DataReference
from conrepair.data.prepare import PhotoPreparation
from conrepair.data.recipe import SpatialRecipe
from conrepair.pipeline.datasets import Dataset
from conrepair.pipeline.fingerprint import library_versions
from conrepair.runtime.files import sha256_of
from conrepair.runtime.store import Store, job_key

__all__ = ["PhotoRoom"]

_KIND = "photos"


class PhotoRoom:
    """Starts decoding in the background and knows where the rows are.

    Args:
        store: Keeps prepared photos between runs.
        reuse: Whether stored ones are taken.
    """

    def __init__(self, store: Store, *, reuse: bool) -> None:
        self._store = store
        self._reuse = reuse
        self._preparations: list[PhotoPreparation] = []
        self._folders: dict[tuple[str, SpatialRecipe], tuple[Path, str]] = {}

    def prepare(self, dataset: Dataset, geometries: set[SpatialRecipe]) -> None:
        """Start preparing photos for all geometries at once, so that each is decoded once.

        Args:
            dataset: Of photos.
            geometries: Those that models of the run need.

        Raises:
            StorageError: if there's no room.
        """
        missing: dict[SpatialRecipe, Path] = {}
        for spatial in sorted(geometries, key=repr):
            if (dataset.sha256, spatial) in self._folders:
                continue
            key = _key(dataset, spatial)
            folder = self._store.folder(_KIND, key)
            self._folders[dataset.sha256, spatial] = (folder, key)
            if not self._reuse or self._store.get(_KIND, key) is None:
                missing[spatial] = folder
        if missing:
            count = dataset.count
            self._preparations.append(
                PhotoPreparation(
                    dataset.photos,
                    missing,
                    lambda folder: self._store.seal(folder, {"count": count}),
                )
            )

    def reference(self, dataset: Dataset, spatial: SpatialRecipe) -> DataReference:
        """The prepared photos as jobs read them; starts preparing if nobody asked before."""
        if (dataset.sha256, spatial) not in self._folders:
            self.prepare(dataset, {spatial})
        folder, key = self._folders[dataset.sha256, spatial]
        return DataReference("photos", dataset.count, str(folder), sha256=key)

    @property
    def decoded(self) -> int:
        """Number of photos decoded so far in this run."""
        return sum(preparation.decoded for preparation in self._preparations)

    def wait(self) -> None:
        """Wait until everything is decoded.

        Raises:
            DataError: if a photo can't be read.
        """
        for preparation in self._preparations:
            preparation.wait()

    def stop(self) -> None:
        """Stop decoding."""
        for preparation in self._preparations:
            preparation.stop()


def _key(dataset: Dataset, spatial: SpatialRecipe) -> str:
    payload = {
        "photos": dataset.sha256,
        "spatial": dataclasses.asdict(spatial),
        "code": _decoder_hash(),
    }
    return job_key(_KIND, payload, f"pillow {library_versions().get('pillow')}")


def _decoder_hash() -> str:
    import conrepair.data

    folder = Path(str(conrepair.data.__file__)).parent
    return "".join(sha256_of(folder / f"{name}.py")[:16] for name in ("decode", "recipe", "resample"))

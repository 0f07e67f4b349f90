"""Prepare the photos of a run: once for every geometry, from the store when an earlier run did it."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.metadata
import itertools
from pathlib import Path

from conrepair.application.pipeline.datasets import Dataset
from conrepair.ground.data.feeds import DataReference, image_input
from conrepair.ground.data.pictures.prepare import PhotoPreparation
from conrepair.ground.data.pictures.recipe import Recipe, SpatialRecipe
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import ConrepairError, StorageError
from conrepair.ground.runtime.files.store import Store, job_key
from conrepair.ground.runtime.files.whole import sha256_of

_KIND = "photos"
_DEFAULT_PHOTO_SIZE = 224


def sized_recipe(recipe: Recipe, inputs: tuple[TensorSpec, ...]) -> Recipe:
    """The recipe with the size of the model's image input.

    Raises:
        DataError: if the model doesn't take exactly one image.
    """
    spec = image_input(inputs)
    axes = (1, 2) if spec.layout == "NHWC" else (2, 3)
    height, width = (spec.shape[axis] for axis in axes)
    if not isinstance(height, int) or not isinstance(width, int):
        height = width = _DEFAULT_PHOTO_SIZE
    return recipe.for_size(height, width)


class PhotoRoom:
    """Starts decoding in the background and knows where the rows are.

    New rows lie in a scratch folder of this run, so that two runs don't write into each other's; `close` moves the
    complete ones into the store.

    Args:
        store: Keeps prepared photos between runs.
        reuse: Whether stored ones are taken.
    """

    def __init__(self, store: Store, *, reuse: bool) -> None:
        self._store = store
        self._reuse = reuse
        self._scratch = contextlib.ExitStack()
        self._preparations: dict[str, list[PhotoPreparation]] = {}
        self._folders: dict[tuple[str, SpatialRecipe], tuple[Path, str]] = {}
        self._complete: dict[Path, tuple[str, int]] = {}

    def prepare(self, dataset: Dataset, geometries: set[SpatialRecipe]) -> None:
        """Start preparing photos for all geometries at once, so that each is decoded once.

        Args:
            dataset: Of photos.
            geometries: Those that models of the run need.

        Raises:
            StorageError: if there's no room.
        """
        missing: dict[SpatialRecipe, Path] = {}
        keys: dict[Path, str] = {}
        for spatial in sorted(geometries, key=repr):
            if (dataset.sha256, spatial) in self._folders:
                continue
            key = _key(dataset, spatial)
            folder = self._store.folder(_KIND, key)
            if not self._reuse or self._store.get(_KIND, key) is None:
                folder = self._scratch.enter_context(self._store.scratch())
                missing[spatial] = folder
                keys[folder] = key
            self._folders[dataset.sha256, spatial] = (folder, key)

        def finished(folder: Path) -> None:
            self._complete[folder] = (keys[folder], dataset.count)

        if missing:
            preparation = PhotoPreparation(dataset.photos, missing, finished)
            self._preparations.setdefault(dataset.sha256, []).append(preparation)

    def reference(self, dataset: Dataset, spatial: SpatialRecipe) -> DataReference:
        """The prepared photos as jobs read them; starts preparing if nobody asked before."""
        if (dataset.sha256, spatial) not in self._folders:
            self.prepare(dataset, {spatial})
        folder, key = self._folders[dataset.sha256, spatial]
        return DataReference("photos", dataset.count, str(folder), sha256=key)

    def wait(self) -> dict[str, ConrepairError]:
        """Wait until everything is decoded.

        Returns:
            Why a dataset could not be prepared, by its hash.

        Raises:
            StorageError: if there's no room in a store that others use, too.
        """
        errors: dict[str, ConrepairError] = {}
        for sha256, preparations in self._preparations.items():
            for preparation in preparations:
                try:
                    preparation.wait()
                except ConrepairError as error:
                    self._store.check(str(error) if isinstance(error, StorageError) else "")
                    errors.setdefault(sha256, error)
        return errors

    def close(self) -> None:
        """Stop decoding; keep what is complete.

        Raises:
            StorageError: if there's no room to keep it.
        """
        with self._scratch:
            for preparation in itertools.chain.from_iterable(self._preparations.values()):
                preparation.stop()
            for folder, (key, count) in self._complete.items():
                try:
                    self._store.put(_KIND, key, folder, {"count": count})
                except (StorageError, OSError):
                    if not self._store.shared:  # a cache that's full: this run has had its photos
                        raise


def _key(dataset: Dataset, spatial: SpatialRecipe) -> str:
    payload = {"photos": dataset.sha256, "spatial": dataclasses.asdict(spatial), "code": _decoder_hash()}
    return job_key(_KIND, payload, f"pillow {importlib.metadata.version('pillow')}")


def _decoder_hash() -> str:
    import conrepair.ground.data.pictures

    folder = Path(str(conrepair.ground.data.pictures.__file__)).parent
    return "".join(sha256_of(folder / f"{name}.py")[:16] for name in ("decode", "prepare", "recipe", "resample"))

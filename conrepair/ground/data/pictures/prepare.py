"""Decode every photo once, for all models of a run, while they already run.

A thread pool of the main process writes the geometric part of preprocessing (decoded, resized, cropped) into a
memory-mapped array; a counter beside it says how many rows are ready. Worker processes read rows as they
become ready, so decoding overlaps with inference, and models that share the geometry share the rows.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import struct
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.ground.data.pictures.recipe import SpatialRecipe, apply_spatial
from conrepair.ground.runtime.errors import ConrepairError, DataError
from conrepair.ground.runtime.files.whole import storage_error

_PIXELS = "pixels.npy"
_READY = "ready"
_FAILED = -1
_POLL_SECONDS = 0.002


class PhotoPreparation:
    """Decodes photos in the background, once each, for several geometries.

    Args:
        photos: Files, in order.
        folders: Where the rows of each geometry are written.
        finished: Called with each folder when its rows are complete, to seal it.
        threads: Decoding threads.
    """

    def __init__(
        self,
        photos: Sequence[Path],
        folders: dict[SpatialRecipe, Path],
        finished: Callable[[Path], None],
        threads: int | None = None,
    ) -> None:
        self._photos = list(photos)
        self._folders = folders
        self._finished = finished
        self._threads = threads or os.cpu_count() or 1
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self.decoded = 0
        self._rows = {spatial: _allocate(folder, len(self._photos), spatial) for spatial, folder in folders.items()}
        self._thread = threading.Thread(target=self._work, name="decode", daemon=True)
        if folders:
            self._thread.start()

    def wait(self) -> None:
        """Wait until all photos are decoded.

        Raises:
            DataError: if a photo can't be read.
            StorageError: if there's no room for the rows.
        """
        if self._folders:
            self._thread.join()
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Stop early; unfinished rows are removed."""
        self._stop.set()
        if self._folders:
            self._thread.join()

    def _work(self) -> None:
        try:
            self._decode_all()
            for folder in self._folders.values():
                self._finished(folder)
        # Reported by wait(), in the thread that asks; waiting workers are told by the counter.
        except BaseException as error:  # noqa: BLE001
            self._error = error
            for folder in self._folders.values():
                _set_ready(folder, _FAILED)
                shutil.rmtree(folder, ignore_errors=True)

    def _decode_all(self) -> None:
        with ThreadPoolExecutor(self._threads, thread_name_prefix="decode") as pool:
            # Bounded: never more decoded photos in memory than a few per thread.
            step = 4 * self._threads
            for start in range(0, len(self._photos), step):
                if self._stop.is_set():
                    raise DataError("decoding was stopped")
                indices = range(start, min(start + step, len(self._photos)))
                for _ in pool.map(self._decode_one, indices):
                    self.decoded += 1
                for folder in self._folders.values():
                    _set_ready(folder, indices.stop)

    def _decode_one(self, index: int) -> None:
        photo = self._photos[index]
        from conrepair.ground.data.pictures.decode import (
            decode_picture,  # with Pillow, which other data needs none of
        )

        picture = decode_picture(photo)
        for spatial, rows in self._rows.items():
            try:
                rows[index] = apply_spatial(spatial, picture)
            except DataError as error:
                raise DataError(f"{photo}: {error}") from error


class PreparedPhotos:
    """The reading side: rows of one geometry, in any process.

    Args:
        folder: Of one geometry.
        count: Number of photos.
    """

    def __init__(self, folder: Path, count: int) -> None:
        self.count = count
        self._parent = os.getppid()
        try:
            self._counter = (folder / _READY).open("rb", buffering=0)
            self._rows: npt.NDArray[Any] = np.load(folder / _PIXELS, mmap_mode="r")
        except FileNotFoundError as error:
            raise DataError("the photos could not be prepared; see the first error of this run.") from error

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Rows [start, stop), waiting until they're decoded: uint8 or float32 [n, height, width, 3].

        Raises:
            DataError: if decoding failed meanwhile.
        """
        while (ready := self._ready()) < stop:
            if ready == _FAILED:
                raise DataError("the photos could not be prepared; see the first error of this run.")
            if os.getppid() != self._parent:
                raise DataError("the process that decodes the photos is gone")
            time.sleep(_POLL_SECONDS)
        return self._rows[start:stop]

    def _ready(self) -> int:
        return int(struct.unpack("<q", os.pread(self._counter.fileno(), 8, 0))[0])


def wait_for_photos(folder: Path) -> None:
    """Wait until all rows in a folder are decoded, or nobody decodes them any more; of any other folder, not at all.

    Args:
        folder: Of one geometry, for somebody who takes it along as it is.
    """
    with contextlib.suppress(DataError):
        if (folder / _READY).is_file():
            count = len(np.load(folder / _PIXELS, mmap_mode="r"))
            PreparedPhotos(folder, count).read(count, count)


def _allocate(folder: Path, count: int, spatial: SpatialRecipe) -> npt.NDArray[Any]:
    """Make the file at its full size, with its blocks reserved: a full disk is an error here, not a SIGBUS."""
    if spatial.size is None:
        raise ConrepairError("photos need a size to be prepared for")
    with storage_error(folder):
        folder.mkdir(parents=True, exist_ok=True)
        dtype = np.uint8 if spatial.resampler == "pillow" else np.float32
        path = folder / _PIXELS
        shape = (count, *spatial.size, 3)
        try:
            rows = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)
            with path.open("r+b") as stream:
                os.posix_fallocate(stream.fileno(), 0, path.stat().st_size)
            _set_ready(folder, 0)
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    return rows


def _set_ready(folder: Path, count: int) -> None:
    if not folder.is_dir():
        return
    with (folder / _READY).open("r+b" if (folder / _READY).exists() else "wb", buffering=0) as stream:
        os.pwrite(stream.fileno(), struct.pack("<q", count), 0)

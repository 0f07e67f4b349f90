"""Contents by their hash, where all machines reach them: a shared folder, or object storage."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conrepair.ground.runtime.errors import DataError, UsageError
from conrepair.ground.runtime.files.whole import make_folder, sha256_of, storage_error

_URL = "://"


class Blobs:
    """Puts files whole and fetches them checked; the same content is there once.

    Args:
        exchange: A folder that all machines see under this name, or a URL that fsspec opens ("s3://bucket/place").

    Attributes:
        exchange: As given.

    Raises:
        UsageError: if fsspec, or what it needs for such a URL, isn't there.
        StorageError: if the folder can't be made.
    """

    def __init__(self, exchange: str) -> None:
        self.exchange = exchange
        self._remote: Any = None
        self._root = exchange
        if _URL not in exchange:
            make_folder(Path(exchange))
            return
        try:
            import fsspec

            self._remote, self._root = fsspec.core.url_to_fs(exchange)
        except (ImportError, ValueError) as error:
            raise UsageError(f"the exchange {exchange} can't be opened: {error}.") from error

    def put(self, file: Path, sha256: str) -> int:
        """Make a file's content known, unless it is already.

        Args:
            file: With that content.
            sha256: Of it.

        Returns:
            How many bytes went there.

        Raises:
            StorageError: if there's no room.
        """
        size = file.stat().st_size
        if self._size(sha256) == size:  # what was torn off has another
            return 0
        with storage_error(Path(self.exchange)):
            self._put(file, sha256)
        return size

    def fetch(self, sha256: str, destination: Path) -> int:
        """Write a content to a file that isn't there yet; it appears whole, and only if it's what was asked for.

        Args:
            sha256: Of it.
            destination: The file.

        Returns:
            Its size.

        Raises:
            DataError: if it isn't there, or is another.
            StorageError: if there's no room.
        """
        with storage_error(destination.parent), _beside(destination) as temporary:
            try:
                if self._remote is not None:
                    self._remote.get_file(self._name(sha256), str(temporary))
                else:
                    shutil.copyfile(self._name(sha256), temporary)
            except FileNotFoundError as error:
                raise DataError(f"{self.exchange} has no content {sha256}.") from error
            if sha256_of(temporary) != sha256:
                raise DataError(f"{self.exchange} has another content under {sha256}. Remove it there.")
            size: int = temporary.stat().st_size
            temporary.replace(destination)
        return size

    def _size(self, sha256: str) -> int:
        with contextlib.suppress(FileNotFoundError):
            if self._remote is None:
                return Path(self._name(sha256)).stat().st_size
            return int(self._remote.info(self._name(sha256))["size"])
        return -1

    def _parent(self, sha256: str) -> str:
        return f"{self._root.rstrip('/')}/{sha256[:2]}"

    def _name(self, sha256: str) -> str:
        return f"{self._parent(sha256)}/{sha256}"

    def _put(self, file: Path, sha256: str) -> None:
        if self._remote is not None:
            self._remote.makedirs(self._parent(sha256), exist_ok=True)
            self._remote.put_file(str(file), self._name(sha256))  # object storage shows it when it's whole
            return
        place = Path(self._name(sha256))
        place.parent.mkdir(exist_ok=True)
        with _beside(place) as temporary:
            shutil.copyfile(file, temporary)
            temporary.replace(place)


@contextlib.contextmanager
def _beside(place: Path) -> Iterator[Path]:
    """A new file beside a place, which is gone after the block if it wasn't moved."""
    descriptor, name = tempfile.mkstemp(dir=place.parent, prefix=".part-")
    os.close(descriptor)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)

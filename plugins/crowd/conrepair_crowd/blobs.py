"""Contents by their hash, where all machines reach them: a shared folder, or object storage.

Files and folders go there as what's in them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from conrepair.formats.models.identity import model_files
from conrepair.ground.runtime.errors import DataError, UsageError
from conrepair.ground.runtime.files.outputs import place_in
from conrepair.ground.runtime.files.whole import canonical_json, make_folder, sha256_of, storage_error

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


# Files and folders as what's in them, by hash.


@dataclass(frozen=True)
class Tree:
    """A file, or a folder, and what has to lie beside it.

    Attributes:
        name: Its own.
        files: Contents by path, relative to the folder that it's in, with `/`.
        folder: Whether it's a folder.
    """

    name: str
    files: Mapping[str, str] = field(default_factory=dict)
    folder: bool = False

    @property
    def key(self) -> str:
        """Names it, with all that's in it."""
        return hashlib.sha256(canonical_json(asdict(self)).encode()).hexdigest()[:40]


def put_tree(path: Path, blobs: Blobs) -> tuple[Tree, int]:
    """Make a file, or a folder, known to others.

    Args:
        path: Of it.
        blobs: Where.

    Returns:
        It, and how many bytes went there.
    """
    if path.is_dir():
        files = {f"{path.name}/{name}": file for name, file in ordinary_files(path)}
    else:
        files = {file.relative_to(path.parent).as_posix(): file for file in model_files(path)}
    found = {name: sha256_of(file) for name, file in files.items()}
    moved = sum(blobs.put(file, found[name]) for name, file in files.items())
    return Tree(path.name, found, path.is_dir()), moved


class Shelf:
    """Trees that were fetched, each once, for readers that leave them as they are.

    Args:
        folder: Where; nobody else writes there.
        blobs: Where they come from.

    Attributes:
        fetched: Bytes, in all.
    """

    def __init__(self, folder: Path, blobs: Blobs) -> None:
        self._folder, self._blobs = folder, blobs
        self._turn = threading.Lock()
        self.fetched = 0
        for name in ("contents", "trees"):
            (folder / name).mkdir(parents=True, exist_ok=True)

    def place(self, tree: Tree) -> Path:
        """Where a tree lies, which is fetched if it isn't there yet.

        Raises:
            DataError: if it isn't what it says.
            StorageError: if there's no room.
        """
        place = self._folder / "trees" / tree.key
        with self._turn:
            if not place.is_dir():
                with tempfile.TemporaryDirectory(dir=self._folder / "trees", prefix=".part-") as made:
                    self.lay(tree, Path(made) / "tree")
                    (Path(made) / "tree").rename(place)
        return place / tree.name

    def lay(self, tree: Tree, destination: Path) -> None:
        """Make a tree in a new folder; its files are shared with others of the same content.

        Args:
            tree: Which.
            destination: The folder.
        """
        destination.mkdir()
        if tree.folder:
            place_in(destination, f"{tree.name}/_").parent.mkdir()
        for name, sha256 in tree.files.items():
            file = place_in(destination, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            os.link(self._content(sha256), file)

    def _content(self, sha256: str) -> Path:
        if not sha256.isalnum():
            raise DataError(f"{sha256!r} is no hash.")
        file = self._folder / "contents" / sha256
        if not file.exists():
            self.fetched += self._blobs.fetch(sha256, file)
            file.chmod(0o444)
        return file


def ordinary_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """The files below a folder by their relative paths, in order; links, and what else is none, are left out."""
    for file in sorted(folder.rglob("*")):
        if stat.S_ISREG(file.lstat().st_mode):
            yield file.relative_to(folder).as_posix(), file

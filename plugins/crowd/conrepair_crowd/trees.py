"""Files and folders as what's in them, by hash."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from conrepair.formats.models.identity import model_files
from conrepair.ground.runtime.errors import DataError
from conrepair.ground.runtime.files.outputs import place_in
from conrepair.ground.runtime.files.whole import canonical_json, sha256_of
from conrepair_crowd.blobs import Blobs


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

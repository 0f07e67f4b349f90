"""The content-addressed store: results keyed by the hashes of what they were made from.

An entry is a folder `<kind>-<key>/` with the files a job made and a `record.json`, written last, that lists
their hashes. A folder without a valid record is not a result, so a run that was killed never leaves one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conrepair.runtime.files import canonical_json, make_folder, sha256_of, storage_error

__all__ = ["Entry", "Store", "job_key"]

_RECORD = "record.json"
_SCRATCH = ".scratch-"


def job_key(kind: str, payload: Mapping[str, Any], fingerprint: str) -> str:
    """Name a result by what it is made from.

    Args:
        kind: What is done ("convert").
        payload: JSON-able description of the job; holds the hashes of what it reads.
        fingerprint: Identifies the code and the library versions that do it.

    Returns:
        40 hexadecimal digits.
    """
    text = canonical_json({"kind": kind, "payload": payload, "fingerprint": fingerprint})
    return hashlib.sha256(text.encode()).hexdigest()[:40]


@dataclass(frozen=True)
class Entry:
    """One stored result.

    Attributes:
        folder: Where its files are.
        result: What the job returned (JSON-able).
    """

    folder: Path
    result: dict[str, Any]


class Store:
    """Results on disk, below `root`; safe to share between runs that follow one another."""

    def __init__(self, root: Path) -> None:
        self.root = root
        make_folder(root)
        self._sweep()

    def get(self, kind: str, key: str) -> Entry | None:
        """Return the entry if it is there, whole and unchanged; a damaged one is removed."""
        folder = self.folder(kind, key)
        try:
            record = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
            intact = record["files"] == _hashes(folder)
            result = record["result"]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            intact = False
        if intact:
            return Entry(folder, result)
        shutil.rmtree(folder, ignore_errors=True)
        return None

    def folder(self, kind: str, key: str) -> Path:
        """Where the entry is or would be."""
        return self.root / f"{kind}-{key}"

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """Yield an empty folder for a job to write into; it and what lies beside it are gone after the block."""
        with storage_error(self.root):
            room = Path(tempfile.mkdtemp(prefix=f"{_SCRATCH}{os.getpid()}-", dir=self.root))
            folder = room / "files"
            folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(room, ignore_errors=True)

    def put(self, kind: str, key: str, scratch: Path, result: Mapping[str, Any]) -> Entry:
        """Make the contents of `scratch` the entry's; it appears whole.

        Args:
            kind: What was done.
            key: From `job_key`.
            scratch: A folder from `scratch()`; moved by the call.
            result: JSON-able outcome.

        Raises:
            StorageError: if there is no room.
        """
        destination = self.folder(kind, key)
        with storage_error(self.root):
            self.seal(scratch, result)
            shutil.rmtree(destination, ignore_errors=True)
            scratch.rename(destination)
        return Entry(destination, dict(result))

    @staticmethod
    def seal(folder: Path, result: Mapping[str, Any]) -> None:
        """Write the record of a folder whose files are complete."""
        files = _hashes(folder)
        temporary = folder / f".{_RECORD}"
        record = {"result": dict(result), "files": files}
        temporary.write_text(json.dumps(record, allow_nan=False), encoding="utf-8")
        temporary.replace(folder / _RECORD)

    def _sweep(self) -> None:
        """Remove what runs that no longer exist left half-made."""
        for folder in self.root.glob(f"{_SCRATCH}*"):
            pid = folder.name.removeprefix(_SCRATCH).split("-")[0]
            if not (pid.isdigit() and _alive(int(pid))):
                shutil.rmtree(folder, ignore_errors=True)


def _hashes(folder: Path) -> dict[str, str]:
    return {
        file.relative_to(folder).as_posix(): sha256_of(file)
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file != folder / _RECORD
    }


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True

"""The content-addressed store: results keyed by the hashes of what they were made from.

An entry is a folder `<kind>-<key>/` with the files a job made and a `record.json`, written last, that lists
their hashes. A folder without a valid record is not a result, so a run that was killed never leaves one.
The files of an entry may be released to save space: its result stays.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conrepair.ground.runtime.errors import StorageError, UsageError
from conrepair.ground.runtime.files.listing import is_folder
from conrepair.ground.runtime.files.locks import lock
from conrepair.ground.runtime.files.ordinary_file import read_ordinary
from conrepair.ground.runtime.files.scratch import locked, scratch_folder, sweep
from conrepair.ground.runtime.files.whole import canonical_json, in_place, make_folder, sha256_of, storage_error
from conrepair.ground.runtime.typed import Value, typed
from conrepair.ground.runtime.words import complain, shortened

RECORD = "record.json"
_SCRATCH = ".scratch-"
_JOURNAL = ".journal-"
_LOCK = ".lock"
_USERS = ".users"
_WORK = ".work"
_LARGEST_RECORD = 256 << 20  # bytes


def job_key(kind: str, payload: Mapping[str, Any], fingerprint: str) -> str:
    """Name a result by what it is made from.

    Args:
        kind: What is done ("convert").
        payload: JSON-able description of the job; holds the hashes of what it reads.
        fingerprint: Identifies the code and the library versions that do it.

    Returns:
        40 hexadecimal digits.
    """
    text = canonical_json({"kind": kind, "payload": payload, "fingerprint": fingerprint}, strict=False)
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def journals(root: Path) -> list[Path]:
    """The journals of jobs that aren't finished.

    Args:
        root: Of a store, which need not be there.
    """
    return sorted((root / _WORK).glob(f"{_JOURNAL}*"))


@dataclass(frozen=True)
class Entry:
    """One stored result.

    Attributes:
        folder: Where its files are.
        result: What the job returned (JSON-able).
    """

    folder: Path
    result: Any

    def read(self, kind: type[Value]) -> Value:
        """The result as a value.

        Args:
            kind: Of what the job returns.
        """
        return typed(kind, self.result)


class Store:
    """Results on disk, below `root`. Runs may share it at the same time; an entry is never replaced under a reader.

    Args:
        root: Its folder.
        fresh: Whether entries are replaced by new ones. Such a run has the store for itself.
        own: Root of this run alone, for journals, where the store is one that unrelated runs share: then its jobs
            write to a folder that other runs' jobs don't reach. Default: runs share journals, too.

    Raises:
        UsageError: if another run uses it, and this one or that one makes everything anew.
        StorageError: if the folder can't be made.

    Attributes:
        root: As given.
        own: As given; default: `root`.
        work: What jobs write to: scratch folders.
        grown: Whether this run has put something into it.
    """

    def __init__(self, root: Path, *, fresh: bool = False, own: Path | None = None) -> None:
        self.root, self.own = root, own or root
        self._fresh, self.grown = fresh, False
        self.work = root / _WORK
        for folder in {self.work, self.own / _WORK}:
            make_folder(folder)
        with storage_error(root):
            (root / _LOCK).touch()
            self._use = os.open(root / _USERS, os.O_RDWR | os.O_CREAT, 0o644)
        self._join()
        sweep(self.work, _SCRATCH)
        self._stack = contextlib.ExitStack()
        self._stack.callback(os.close, self._use)
        if own is not None:
            with storage_error(root):
                self.work = self._stack.enter_context(scratch_folder(self.work, _SCRATCH))

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    @property
    def reach(self) -> tuple[Path, ...]:
        """Folders that jobs write to."""
        return tuple({self.work, self.own / _WORK})

    @property
    def shared(self) -> bool:
        """Whether unrelated runs use it, too, so that a run can do without it."""
        return self.own != self.root

    @property
    def lost(self) -> bool:
        """Whether somebody has removed it, or put another in its place."""
        try:
            return not os.path.samestat((self.root / _USERS).stat(), os.fstat(self._use))
        except OSError:
            return True

    def get(self, kind: str, key: str, *, released: bool = False) -> Entry | None:
        """Return the entry if it is there, whole and unchanged; a damaged one is removed.

        Args:
            kind: What was done.
            key: From `job_key`.
            released: Whether an entry whose files were removed on purpose will do.
        """
        folder = self.folder(kind, key)
        record = _intact(folder)
        if record is None and (folder.exists() or folder.is_symlink()):
            with self._turn():
                record = _intact(folder)  # another run may have made it anew meanwhile
                if record is None:
                    self._remove(folder)
        if record is None or (record.get("released") and not released):
            return None
        with contextlib.suppress(OSError):  # removed by hand, or on a disk that can't be written
            os.utime(folder)  # asked for now; its record is as old as what it says
        return Entry(folder, record["result"])

    def check(self, problem: str) -> None:
        """Say that results can't be kept here, where that's what kept a job from being done.

        Args:
            problem: For want of space, in words; "" for another one, or none.

        Raises:
            StorageError: if so. Who shares a store with others can do without it.
        """
        if not self.shared:
            return
        if self.lost:
            raise StorageError(f"{self.root} was removed meanwhile.")
        if problem:
            raise StorageError(problem)

    def folder(self, kind: str, key: str) -> Path:
        """Where the entry is or would be."""
        return self.root / f"{kind}-{key}"

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """Yield an empty folder for a job to write into; it and what lies beside it are gone after the block."""
        with storage_error(self.root), contextlib.ExitStack() as stack:
            room = stack.enter_context(scratch_folder(self.work, _SCRATCH))
            folder = room / "files"
            folder.mkdir()
            kept = stack.pop_all()
        with kept:
            yield folder

    def journal(self, kind: str, key: str) -> Path:
        """Where a job that isn't finished keeps what it has done (see `Journal`); runs go on with those of others."""
        return self.own / _WORK / f"{_JOURNAL}{kind}-{key}"

    def put(self, kind: str, key: str, scratch: Path, result: Mapping[str, Any]) -> Entry:
        """Make the contents of `scratch` the entry's; it appears whole.

        Args:
            kind: What was done.
            key: From `job_key`.
            scratch: A folder from `scratch()`; moved by the call.
            result: JSON-able outcome.

        Returns:
            The entry: another run's, when that was faster; its readers must not lose it.

        Raises:
            StorageError: if there is no room.
        """
        destination = self.folder(kind, key)
        if Path(os.path.realpath(scratch)).parent.parent != Path(os.path.realpath(self.work)):
            raise StorageError(f"{scratch} was made a link to another folder by what ran there; nothing is kept.")
        with storage_error(self.root):
            _drop_links(scratch)
            self.seal(scratch, result)
            with self._turn():
                record = None if self._fresh else _intact(destination)
                if record is not None and not record.get("released"):
                    return Entry(destination, record["result"])
                self._remove(destination)
                scratch.rename(destination)
                self.grown = True
        return Entry(destination, dict(result))

    def discard(self, kind: str, key: str) -> None:
        """Remove an entry, if there's one."""
        with self._turn():
            self._remove(self.folder(kind, key))

    def release(self, folders: Iterable[Path]) -> None:
        """Remove the files of entries but keep their results, unless another run uses the store.

        Args:
            folders: Of entries.
        """
        with self.alone() as alone:
            for folder in folders if alone else ():
                record = _read(folder)
                if record is None:
                    continue
                _keep_others(folder, _own(record))
                if not record.get("released"):
                    _write_record(folder, {**record, "released": True})
                _empty(folder)

    @contextlib.contextmanager
    def alone(self) -> Iterator[bool]:
        """Yield whether no other run uses the store; none puts or removes an entry, or begins, during the block."""
        with self._turn():
            yield self._alone()

    def replace(self, folder: Path, new: Path | None = None) -> None:
        """Remove an entry while the store is `alone`, or put another in its place; it vanishes whole.

        Args:
            folder: Of the entry, which need not be there.
            new: Folder of another one, on the same disk; moved by the call.
        """
        self._remove(folder)
        if new is not None:
            new.rename(folder)
            self.grown = True

    @staticmethod
    def seal(folder: Path, result: Mapping[str, Any]) -> None:
        """Write the record of a folder whose files are complete."""
        _write_record(folder, {"result": dict(result), "files": _hashes(folder)})

    def _turn(self) -> contextlib.AbstractContextManager[None]:
        """Let one run at a time change what others may be reading."""
        return locked(self.root / _LOCK)

    def _join(self) -> None:
        """Say to other runs that this one uses the store."""
        with self._turn():
            if not self._held(shared=not self._fresh):
                os.close(self._use)
                raise UsageError(
                    f"{self.root} is used by another run, and one of the two makes everything anew (--fresh, "
                    "`reuse: false`). Wait until that one has ended, or give another output folder (`output`, or -o)."
                )

    def _held(self, *, shared: bool) -> bool:
        return lock(self._use, shared=shared, wait=False, needless=True)

    def _alone(self) -> bool:
        """Whether no other run uses the store; none can begin before the turn ends."""
        try:
            return self._held(shared=False)
        finally:
            self._held(shared=not self._fresh)  # an attempt that fails loses the lock

    def _remove(self, folder: Path) -> None:
        """Remove an entry; it vanishes whole, even when this process is killed meanwhile. Others' files stay."""
        if not (folder.exists() or folder.is_symlink()):
            return
        _keep_others(folder, _own(_read(folder)))
        if not folder.exists():  # something else was in its place
            return
        with self.scratch() as scratch:
            folder.rename(scratch / folder.name)


def _intact(folder: Path) -> dict[str, Any] | None:
    """The record of an entry, if it is whole and its files have their hashes, or were released."""
    record = _read(folder)
    with contextlib.suppress(OSError):
        if record is not None and (record.get("released") or record["files"] == _hashes(folder)):
            return record
    return None


def _read(folder: Path) -> dict[str, Any] | None:
    """The record of an entry, if it has a whole one."""
    try:
        record: Any = json.loads(read_ordinary(folder / RECORD, _LARGEST_RECORD))
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) and {"result", "files"} <= record.keys() else None


def _own(record: Mapping[str, Any] | None) -> set[str]:
    """Paths of an entry's files; of one without a record nothing is known."""
    files = record["files"] if record is not None else {}
    return {*(files if isinstance(files, dict) else ()), RECORD, f".{RECORD}"}


def _write_record(folder: Path, record: Mapping[str, Any]) -> None:
    temporary = folder / f".{RECORD}"
    with open(temporary, "w", encoding="utf-8", opener=in_place) as stream:
        stream.write(json.dumps(record))
    temporary.replace(folder / RECORD)


def _drop_links(folder: Path) -> None:
    """Remove links: what they lead to isn't the job's, and nothing may be written through them."""
    for item in folder.rglob("*"):
        if item.is_symlink():
            item.unlink()


def _empty(folder: Path) -> None:
    """Remove everything but the record."""
    for item in folder.iterdir():
        if item.is_dir() and not item.is_symlink():
            shutil.rmtree(item)
        elif item.name != RECORD:
            item.unlink()


def _hashes(folder: Path) -> dict[str, str]:
    return {
        file.relative_to(folder).as_posix(): sha256_of(file)
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file != folder / RECORD
    }


# What somebody has put into entries: it's kept where they are removed.


_KEPT = "kept"
_SHOWN, _NAME = 5, 60


def _keep_others(entry: Path, ours: Collection[str]) -> None:
    """Move all files of an entry that aren't its own to a folder beside the entries, and say so.

    Args:
        entry: Of a store; something else may stand in its place.
        ours: Paths of its own files in it.
    """
    found = sorted(entry.rglob("*")) if is_folder(entry) else [entry]
    names = [path.relative_to(entry.parent).as_posix() for path in found if not is_folder(path)]
    others = [name for name in names if name.partition("/")[2] not in ours]
    if not others:
        return
    root = _free(entry.parent / _KEPT)
    for name in others:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (entry.parent / name).rename(root / name)
    shown = ", ".join(shortened(name, _NAME) for name in others[:_SHOWN])
    more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
    complain(f"conrepair: kept in {root}, as conrepair didn't write it: {shown}{more}")


def _free(folder: Path) -> Path:
    """A folder in this one that isn't there yet."""
    return next(place for number in range(1_000_000) if not os.path.lexists(place := folder / str(number)))

"""What a Dask worker does with a job: it fetches what the job reads, runs it confined, and puts what it left.

Nothing of the job runs in Dask's process: it gets a process of ours, with the limits that it has everywhere. What
that writes is read as files and as JSON, and goes back by hash.
"""

from __future__ import annotations

import atexit
import collections
import concurrent.futures
import contextlib
import hashlib
import shutil
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from conrepair.application.engine.job_table import jobs, reach_of
from conrepair.ground.runtime.errors import ConrepairError, ExitCode, StorageError, ToolEnvironmentError
from conrepair.ground.runtime.files.whole import sha256_of, storage_error
from conrepair.ground.runtime.outside.environments import find_environment, make_environment
from conrepair.ground.runtime.outside.releases import environments_of
from conrepair.ground.runtime.processes.confinement import CONFINED, GPU
from conrepair.ground.runtime.processes.reach import OPEN
from conrepair.ground.runtime.processes.workers import NO_LIBRARY, STORAGE, Failure, Job, Outcome, Success, Workers
from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair_crowd.blobs import Blobs, Shelf, Tree, ordinary_files
from conrepair_crowd.border import with_paths
from conrepair_crowd.identity import otherwise

# Environments that jobs need, on a worker's machine: made there once, whoever asks for them.

_REMEMBERED_SECONDS = 600.0  # for which what couldn't be made isn't tried again: pip takes its time without a network

_making = threading.Lock()
_unmade: dict[str, tuple[float, str]] = {}


def lacking(needs: Iterable[str]) -> str:
    """Make the environments that a job needs and that aren't there yet.

    Args:
        needs: Of the job.

    Returns:
        Why there's one that can't be made, in words; "" where all are there.

    Raises:
        StorageError: if the user's cache folder can't be made.
    """
    for wanted in environments_of(needs):
        if find_environment(wanted) is not None:
            continue
        with _making:  # processes wait for one another, too
            when, words = _unmade.get(wanted.key, (0.0, ""))
            if words and time.monotonic() - when < _REMEMBERED_SECONDS:
                return words
            try:
                with ProgressDisplay(quiet=True) as display:
                    make_environment(wanted, display)
            except ToolEnvironmentError as error:
                _unmade[wanted.key] = time.monotonic(), str(error)
                return str(error)
    return ""


_SMALL, _MOST = 1 << 16, 1 << 22
"""Bytes of a file that goes in the answer itself, and of all that do: asking the exchange for each costs more."""

SENT = frozenset({CONFINED, GPU})
"""How far jobs may reach that are sent to other machines: what isn't confined stays where its user is."""

_rooms: dict[tuple[str, float | None], _Room] = {}
_opening = threading.Lock()


def run(request: Mapping[str, Any]) -> dict[str, Any]:
    """Do a job on this machine; called by Dask.

    Args:
        request: Plain. "function", "payload", "paths" (place in the payload, and tree), "journal" (tree, or None),
            "needs", "timeout", "reach", "environment", "alone", "exchange", "memory_gb", "identity".

    Returns:
        "kind" ("success" or "failure") and "fields" of the outcome; "files" (contents by path that the job left),
        "inline" (small contents by hash; others are in the exchange), "journal" (as "files", of its journal), "texts"
        (paths of this machine, and what they stand for: a number of "paths", or "folder"), "worker" and "address"
        (this one's), "fetched" and "put" (bytes).
    """
    from distributed import get_worker

    worker = get_worker()
    return _answer(request, Path(worker.local_directory)) | {"worker": str(worker.name), "address": worker.address}


def _answer(request: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """As `run`, but for who it is, who has a folder of its own."""
    words = otherwise(request["function"], request["identity"])
    if words:
        return nothing(Failure(NO_LIBRARY, "OtherVersions", f"{words}."))
    if request["reach"] not in SENT or reach_of(request["function"], device=GPU) == OPEN:
        return nothing(Failure("refused", "NotConfined", f"{request['function']} isn't run for others."))
    try:
        if words := lacking(request["needs"]):
            return nothing(Failure(NO_LIBRARY, "NoEnvironment", words, exit_code=int(ExitCode.USAGE)))
        return _room(request, folder).run(request)
    except StorageError as error:
        return nothing(Failure(STORAGE, type(error).__name__, str(error)))
    except ConrepairError as error:  # what it reads isn't there as it was sent
        return nothing(Failure("changed", type(error).__name__, str(error), exit_code=int(error.exit_code)))


def nothing(failure: Failure) -> dict[str, Any]:
    """What `run` returns of a job that no worker began.

    Args:
        failure: Why.
    """
    told = {"kind": "failure", "fields": asdict(failure), "files": {}, "inline": {}, "journal": None, "texts": {}}
    return told | {"worker": "", "address": "", "fetched": 0, "put": 0}


def _room(request: Mapping[str, Any], folder: Path) -> _Room:
    from distributed import get_worker

    key = request["exchange"], request["memory_gb"]
    with _opening:
        if key not in _rooms:
            with storage_error(folder):
                place = Path(tempfile.mkdtemp(prefix="conrepair-", dir=folder))
            threads = int(get_worker().state.nthreads)
            _rooms[key] = _Room(place, Blobs(request["exchange"]), threads, request["memory_gb"])
        return _rooms[key]


class _Room:
    """What jobs of one exchange have in a worker: processes, and what was fetched."""

    def __init__(self, folder: Path, blobs: Blobs, count: int, memory_gb: float | None) -> None:
        self._blobs, self._work = blobs, folder / "work"
        self._work.mkdir()
        self._shelf = Shelf(folder / "shelf", blobs)
        self._workers = Workers(count, jobs=jobs(), memory_gb=memory_gb, folders=(self._work,)).__enter__()
        self._turn = threading.Condition()
        self._queue: collections.deque[object] = collections.deque()
        atexit.register(self._close, folder)

    def _close(self, folder: Path) -> None:
        self._workers.__exit__()
        shutil.rmtree(folder, ignore_errors=True)

    def run(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """As `_answer`, of a job that is one for this machine."""
        before = self._shelf.fetched
        with storage_error(self._work), tempfile.TemporaryDirectory(dir=self._work) as room:
            folder = Path(room) / "files"
            folder.mkdir()
            texts: dict[str, Any] = {str(folder): "folder"}
            paths, payload = [], dict(request["payload"])
            for number, (place, tree) in enumerate(request["paths"]):
                path = str(self._shelf.place(Tree(**tree)))
                paths.append((tuple(place), path))
                texts[path] = number
            payload = with_paths(payload, paths)
            journal = None
            if request["journal"] is not None:
                journal = Path(room) / "journal"  # what was in it is copied, as the job may write to it
                shutil.copytree(self._shelf.place(Tree(**request["journal"])), journal, copy_function=shutil.copyfile)
                payload["journal"] = str(journal)
            job = Job(
                request["function"],
                payload,
                folder,
                frozenset(request["needs"]),
                request["timeout"],
                request["reach"],
                request["environment"],
            )
            outcome = self._ended(job, alone=request["alone"])
            inline: dict[str, bytes] = {}
            files, moved = self._put(folder, inline)
            kept, more = (None, 0) if journal is None else self._put(journal, inline)
        success = isinstance(outcome, Success)
        return {
            "kind": "success" if success else "failure",
            "fields": asdict(outcome),
            "files": files,
            "inline": inline,
            "journal": kept,
            "texts": texts,
            "fetched": self._shelf.fetched - before,
            "put": moved + more,
        }

    def _ended(self, job: Job, *, alone: bool) -> Outcome:
        """Run a job when it's its turn: first come, first served, so that who needs the machine alone gets it."""
        ticket = object()
        with self._turn:
            self._queue.append(ticket)
            while (lane := self._idle(ticket, job, alone=alone)) is None:
                self._turn.wait()
            self._queue.popleft()
            try:
                future = self._workers.start(lane, job)
            finally:
                self._turn.notify_all()
        while not concurrent.futures.wait([future], self._workers.watch_seconds).done:
            with self._turn:
                self._workers.stop_oversized()
        with self._turn:
            try:
                return self._workers.outcome(lane, job, future)
            finally:
                self._turn.notify_all()

    def _idle(self, ticket: object, job: Job, *, alone: bool) -> Any:
        if self._queue[0] is not ticket:
            return None
        return self._workers.idle_lane(job.needs, job.reach, job.environment, alone=alone)

    def _put(self, folder: Path, inline: dict[str, bytes]) -> tuple[dict[str, str], int]:
        found, moved = {}, 0
        for name, file in ordinary_files(folder):
            with contextlib.suppress(FileNotFoundError):  # what a job left may still be going
                size = file.stat().st_size
                if size <= min(_SMALL, _MOST - sum(map(len, inline.values()))):
                    content = file.read_bytes()
                    found[name] = hashlib.sha256(content).hexdigest()
                    inline[found[name]] = content
                    moved += size
                else:
                    found[name] = sha256_of(file)
                    moved += self._blobs.put(file, found[name])
        return found, moved

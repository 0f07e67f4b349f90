"""An executor whose slots are those of a Dask cluster; what has to run where its user is, runs on this machine."""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import hashlib
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from conrepair.ground.data.pictures.prepare import wait_for_photos
from conrepair.ground.runtime.errors import DataError, StorageError
from conrepair.ground.runtime.files.outputs import place_in
from conrepair.ground.runtime.files.whole import canonical_json, storage_error
from conrepair.ground.runtime.processes.confinement import CONFINED
from conrepair.ground.runtime.processes.workers import NO_LIBRARY, STORAGE, Failure, Job, Outcome, Success, Workers
from conrepair.ground.runtime.shown.standing import Elsewhere, Machine
from conrepair.ground.runtime.typed import plain
from conrepair_crowd.blobs import Blobs, put_tree
from conrepair_crowd.border import paths_of, with_texts
from conrepair_crowd.cluster import Cluster
from conrepair_crowd.identity import identity
from conrepair_crowd.placing import wanted_resources
from conrepair_crowd.there import SENT

_WATCH_SECONDS = 0.1
_AHEAD = 1.25  # jobs that are given for each that runs, so that what they read is there when it's their turn
_ELSEWHERE = {NO_LIBRARY, STORAGE}  # failures of a machine, where another may do


@dataclass(frozen=True)
class _Slot:
    """A place in the cluster.

    Attributes:
        alone: Whether it gets its machine to itself.
    """

    alone: bool


class Crowd:
    """Runs confined jobs on a cluster.

    Args:
        cluster: Which.
        blobs: By which files go there and back.
        here: Runs all others.
        memory_gb: That a worker may hold; None for a share of what's free on its machine.

    Attributes:
        memory_gb: As given.
        moved: Bytes by where: "sent" and "received" of this machine, "fetched" and "put" of workers.
        jobs: How many each worker did, by its name and the kind of job.
        again: How many jobs went to another worker, since one lacked something.
    """

    watch_seconds = _WATCH_SECONDS

    def __init__(self, cluster: Cluster, blobs: Blobs, here: Workers, memory_gb: float | None) -> None:
        self._cluster, self._blobs, self._here, self.memory_gb = cluster, blobs, here, memory_gb
        self._turn, self._busy = threading.Lock(), 0
        self.moved = dict.fromkeys(("sent", "received", "fetched", "put"), 0)
        self.jobs: dict[str, collections.Counter[str]] = {}
        self.again = 0

    def idle_lane(
        self,
        needs: frozenset[str],
        reach: str = CONFINED,
        environment: Mapping[str, str] | None = None,
        *,
        alone: bool = False,
    ) -> Any:
        """As of `Executor`."""
        if reach not in SENT:
            return self._here.idle_lane(needs, reach, environment, alone=alone)
        threads = sum(worker["nthreads"] for worker in self._cluster.workers.values())
        return _Slot(alone) if self._busy < max(1, int(_AHEAD * threads)) else None

    def start(self, lane: Any, job: Job) -> concurrent.futures.Future[Any]:
        """As of `Executor`."""
        if not isinstance(lane, _Slot):
            begun: concurrent.futures.Future[Any] = self._here.start(lane, job)
            return begun
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()

        def work() -> None:
            try:
                future.set_result(self._done(lane, job))
            # It's raised where the outcome is asked for.
            except BaseException as error:  # noqa: BLE001
                future.set_exception(error)

        self._busy += 1
        threading.Thread(target=work, name="job", daemon=True).start()
        return future

    def outcome(self, lane: Any, job: Job, future: Any) -> Outcome:
        """As of `Executor`.

        Raises:
            ConrepairError: if the cluster or the exchange has failed, and not the job: nothing is said of that then.
        """
        if not isinstance(lane, _Slot):
            return self._here.outcome(lane, job, future)
        try:
            result: Outcome = future.result()
        finally:
            self._busy -= 1
        return result

    def stop_oversized(self) -> None:
        """Of those on this machine: workers see to their own, and are looked at."""
        self._here.stop_oversized()
        if self._cluster.answers:
            _ = self._cluster.workers  # what's known of them is told while everybody waits

    def jobs_by_worker(self) -> dict[str, collections.Counter[str]]:
        """`jobs`, as they are now."""
        with self._turn:
            return {name: kinds.copy() for name, kinds in self.jobs.items()}

    def _done(self, slot: _Slot, job: Job) -> Outcome:
        try:
            request, paths = self._request(slot, job)
            answer, name = self._answer(request, job)
            self._receive(answer, job)
        except StorageError as error:
            return Failure(STORAGE, type(error).__name__, str(error))
        texts = {
            text: str(job.folder) if meant == "folder" else str(paths[int(meant)])
            for text, meant in answer["texts"].items()
        }
        fields = with_texts(answer["fields"], texts)
        if answer["kind"] == "success":
            return Success(fields["value"], fields["seconds"])
        failure = Failure(**fields)
        return replace(failure, message=f"{name}: {failure.message}") if failure.kind in _ELSEWHERE else failure

    def _request(self, slot: _Slot, job: Job) -> tuple[dict[str, Any], list[Path]]:
        """What a worker is told, and the paths that are meant by it; what it reads is put where it gets it."""
        payload = plain(job.payload)
        journal = payload.pop("journal", None)
        places, paths = [], []
        for place, path in paths_of(payload):
            wait_for_photos(path)
            tree, moved = put_tree(path, self._blobs)
            self._count(sent=moved)
            places.append((list(place), asdict(tree)))
            paths.append(path)
        if journal is not None:
            journal, moved = put_tree(Path(journal), self._blobs)
            self._count(sent=moved)
        told = {
            "function": job.function,
            "payload": payload,
            "paths": places,
            "journal": None if journal is None else asdict(journal),
            "needs": sorted(job.needs),
            "timeout": job.timeout,
            "reach": job.reach,
            "environment": dict(job.environment),
            "alone": slot.alone,
            "exchange": self._blobs.exchange,
            "memory_gb": self.memory_gb,
            "identity": identity(job.function),
        }
        return told, paths

    def _answer(self, request: Mapping[str, Any], job: Job) -> tuple[Mapping[str, Any], str]:
        """What a worker makes of it, and who: the first one that isn't short of something, or why none isn't."""
        short: dict[str, str] = {}
        while True:
            resources = wanted_resources(job.needs, job.reach, self._cluster.workers.values())
            asked = canonical_json({**request, "without": sorted(short)}, strict=False)
            key = f"{job.function}-{hashlib.sha256(asked.encode()).hexdigest()}"
            answer = self._cluster.done(key, request, resources, short)
            self._count(fetched=answer["fetched"], put=answer["put"])
            name, address = answer["worker"], answer["address"]
            with self._turn:
                self.jobs.setdefault(name, collections.Counter())[job.function] += 1
            if answer["kind"] == "success" or answer["fields"]["kind"] not in _ELSEWHERE:
                return answer, name
            short[address] = name
            # What's known of the workers may be older than this answer: one that has come since has a try, too.
            if not address or (set(self._cluster.workers) <= set(short) and set(self._cluster.asked()) <= set(short)):
                return answer, ", ".join(sorted({*short.values()} - {""}))
            with self._turn:
                self.again += 1

    def _receive(self, answer: Mapping[str, Any], job: Job) -> None:
        """Lay down what the job left; each thing of its folder appears whole, as somebody may be looking there."""
        parts = [(job.folder, answer["files"])]
        if answer["journal"] is not None:
            parts.append((Path(job.payload["journal"]), answer["journal"]))
        for folder, files in parts:
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".received-") as room:
                for name, sha256 in files.items():
                    file = place_in(Path(room), name)
                    file.parent.mkdir(parents=True, exist_ok=True)
                    self._count(received=self._laid(sha256, answer["inline"].get(sha256), file))
                for item in Path(room).iterdir():
                    if (before := folder / item.name).is_dir():
                        shutil.rmtree(before)
                    item.rename(before)
        for file in parts[1][0].iterdir() if len(parts) > 1 else ():
            if file.is_file() and file.name not in answer["journal"]:
                file.unlink()

    def _laid(self, sha256: str, content: bytes | None, file: Path) -> int:
        """Write a content that came in an answer, or is in the exchange; its size."""
        if content is None:
            return self._blobs.fetch(sha256, file)
        if hashlib.sha256(content).hexdigest() != sha256:
            raise DataError(f"a worker sent another content than announced for {sha256}.")
        with storage_error(file.parent):
            file.write_bytes(content)
        return len(content)

    def _count(self, **moved: int) -> None:
        with self._turn:
            for name, size in moved.items():
                self.moved[name] += size


@dataclass(frozen=True)
class CrowdPlace:
    """Where jobs run that go to a cluster, as of `conrepair.application.engine.place`.

    Attributes:
        cluster: Which.
        exchange: As of `Blobs`.
    """

    cluster: Cluster
    exchange: str
    _opened: list[Crowd] = field(default_factory=list)

    @contextlib.contextmanager
    def __call__(self, here: Workers, *, memory_gb: float | None, folders: Sequence[Path]) -> Iterator[Crowd]:
        """An executor on it."""
        self._opened.append(Crowd(self.cluster, Blobs(self.exchange), here, memory_gb))
        yield self._opened[-1]

    @property
    def slots(self) -> int:
        """Threads of all workers."""
        return sum(worker["nthreads"] for worker in self.cluster.workers.values())

    @property
    def told(self) -> str:
        """What there is, for people."""
        count = len(self.cluster.workers)
        return f"conrepair: Dask has {count} workers with {self.slots} threads; its page is {self.cluster.page}"

    def standing(self) -> Elsewhere:
        """What its workers have done so far; nobody is asked for it."""
        known = {str(about["name"]): about for about in self.cluster.known.values()}
        jobs: dict[str, collections.Counter[str]] = {name: collections.Counter() for name in sorted(known)}
        moved: collections.Counter[str] = collections.Counter()
        for crowd in list(self._opened):
            for name, kinds in crowd.jobs_by_worker().items():
                jobs.setdefault(name or "none", collections.Counter()).update(kinds)
            moved.update(crowd.moved)
        machines = (Machine(name, kinds, _begun(known.get(name, {}))) for name, kinds in jobs.items())
        again = self.cluster.again + sum(crowd.again for crowd in self._opened)
        return Elsewhere(tuple(machines), self.cluster.gone, again, moved, self.cluster.page)


def _begun(worker: Mapping[str, Any]) -> int:
    """How many jobs a worker has begun, as Dask knows."""
    return int(worker.get("metrics", {}).get("task_counts", {}).get("executing", 0))


@contextlib.contextmanager
def crowd_at(scheduler: str, exchange: str, *, without_tls: str | None = None) -> Iterator[CrowdPlace]:
    """A cluster, until the block is left.

    Args:
        scheduler: Address of Dask's scheduler.
        exchange: A folder that all machines see, or a URL that fsspec opens.
        without_tls: As of `check_addresses`.
    """
    with Cluster(scheduler, without_tls=without_tls) as cluster:
        yield CrowdPlace(cluster, exchange)

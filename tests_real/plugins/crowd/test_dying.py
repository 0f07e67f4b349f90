"""What happens to a machine, or to the network, in the midst of an audit: it comes to the same."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed")
pytest.importorskip("cryptography")

import dask
from crowd_audit import config_of, document, entries
from crowd_cluster import LoopbackCluster, tls_config, until

from conrepair.application.engine.place import jobs_run_at
from conrepair.application.pipeline.audit import run_and_write
from conrepair_crowd.executor import CrowdPlace, crowd_at

pytestmark = [pytest.mark.slow, pytest.mark.workers, pytest.mark.timeout(600)]

Right = tuple[Path, Path, dict[str, Any]]

_NAMES = ("w0", "w1", "w2")
_TTL = 5  # seconds; Dask takes no fewer for three workers
_SMALL = """
set -e
mount -t tmpfs -o size=64k tmpfs "$1"
head -c 49152 /dev/zero > "$1/others"
shift
exec "$@"
"""


@contextlib.contextmanager
def cluster_of(
    folder: Path, workers: int = 3, *, impatient: bool = False, nannies: bool = False
) -> Iterator[LoopbackCluster]:
    settings = {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": f"{_TTL}s"} if impatient else {}
    with (
        LoopbackCluster(folder, workers, settings, nannies=nannies) as cluster,
        dask.config.set(tls_config(cluster.files)),
    ):
        yield cluster


def comes_to_the_same(
    cluster: LoopbackCluster, right: Right, folder: Path, meanwhile: Callable[[CrowdPlace], None] = lambda _: None
) -> CrowdPlace:
    """Do the audit there, and something else when a few of its jobs are done."""
    models, out, asked = right
    failed: list[BaseException] = []

    def happens() -> None:
        try:
            until(lambda: len(list((folder / "store").glob("execute-*"))) > 1)
            meanwhile(place)
        except BaseException as error:  # noqa: BLE001 (raised below)
            failed.append(error)

    with crowd_at(cluster.address, str(cluster.exchange)) as place, jobs_run_at(place):
        until(lambda: len(place.cluster.workers) == len(_NAMES))
        event = threading.Thread(target=happens)
        event.start()
        run_and_write(config_of(asked, folder), models, quiet=True)
        event.join()
        if failed:
            raise failed[0]
        assert document(folder) == document(out)
        assert entries(folder) == entries(out)
    return place


def test_a_disk_that_is_full_at_one(right: Right, tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    within = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", _SMALL, "sh"]
    allowed = subprocess.run([*within, str(tmp_path / "room"), "true"], capture_output=True, check=False)
    if allowed.returncode:
        pytest.skip(f"no small file system can be made here: {allowed.stderr.decode()}")
    with cluster_of(tmp_path / "cluster", workers=2) as cluster:
        (cluster.folder / "w2").mkdir()
        cluster.start_worker("w2", within=[*within, str(cluster.folder / "w2")])
        place = comes_to_the_same(cluster, right, tmp_path / "out")
        assert sum(crowd.again for crowd in place._opened), "jobs that it had no room for went elsewhere"


def test_a_worker_that_does_not_answer_for_a_while(right: Right, tmp_path: Path) -> None:
    def stops(place: CrowdPlace) -> None:
        worker = cluster.workers["w1"]
        worker.send_signal(signal.SIGSTOP)
        until(lambda: len(place.cluster.workers) == 2)
        worker.send_signal(signal.SIGCONT)

    with cluster_of(tmp_path / "cluster", impatient=True) as cluster:
        comes_to_the_same(cluster, right, tmp_path / "out", stops)


@pytest.mark.parametrize("seconds", [_TTL - 2, 3 * _TTL], ids=["shortly", "longer than workers may"])
def test_a_scheduler_that_does_not_answer_for_a_while(seconds: float, right: Right, tmp_path: Path) -> None:
    """If it's longer than workers may, Dask takes them for lost when it goes on; nannies start others."""

    def stops(_: CrowdPlace) -> None:
        assert cluster.scheduler is not None
        cluster.scheduler.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        cluster.scheduler.send_signal(signal.SIGCONT)

    with cluster_of(tmp_path / "cluster", impatient=True, nannies=True) as cluster:
        comes_to_the_same(cluster, right, tmp_path / "out", stops)


def test_clocks_that_differ(right: Right, tmp_path: Path) -> None:
    (tmp_path / "clock").mkdir()
    (tmp_path / "clock" / "sitecustomize.py").write_text(
        "import os, time\n"
        "off, seconds, nanoseconds = int(os.environ['CLOCK_OFF']), time.time, time.time_ns\n"
        "time.time = lambda: seconds() + off\n"
        "time.time_ns = lambda: nanoseconds() + off * 10**9\n"
    )
    with cluster_of(tmp_path / "cluster", workers=1) as cluster:
        for name, off in (("w1", 365 * 86_400), ("w2", -86_400)):
            cluster.start_worker(name, {"PYTHONPATH": str(tmp_path / "clock"), "CLOCK_OFF": str(off)})
        place = comes_to_the_same(cluster, right, tmp_path / "out")
        assert set(_NAMES) == {name for crowd in place._opened for name in crowd.jobs}

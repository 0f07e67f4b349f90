"""Environments of other releases on a cluster: each machine makes its own, once; who can't says so."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed")
pytest.importorskip("cryptography")

import crowd_audit
import dask
import onnx_networks
from crowd_cluster import LoopbackCluster, tls_config
from stand_in_wheels import wheels

from conrepair.application.config.load import parse_config
from conrepair.application.config.model import EngineConfig
from conrepair.application.engine.job_table import jobs
from conrepair.application.pipeline.audit import run_and_write
from conrepair.ground.runtime.outside.releases import release
from conrepair.ground.runtime.processes.workers import Failure, Job, Outcome, Success, Workers
from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair.verdicts.evaluate.verdict import Verdict
from conrepair_crowd.blobs import Blobs
from conrepair_crowd.cluster import Cluster
from conrepair_crowd.engine import DaskConfig
from conrepair_crowd.executor import Crowd
from conrepair_lab.campaigns.rechecking import recheck
from conrepair_lab.runs.fuzzing import fuzz

pytestmark = [pytest.mark.slow, pytest.mark.workers, pytest.mark.timeout(600)]

RELEASE = "onnxruntime==99.0"
CAMPAIGN = dataclasses.replace(crowd_audit.CAMPAIGN, systems=["ort-none@99.0"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("machines")


@pytest.fixture(scope="module")
def index(folder: Path) -> dict[str, str]:
    return wheels(folder / "wheels", release("onnxruntime", "99.0").pins)


@pytest.fixture(scope="module")
def cluster(folder: Path, index: dict[str, str]) -> Iterator[LoopbackCluster]:
    """Two workers of a machine that has an index, and one of another that reaches none."""
    with LoopbackCluster(folder, workers=0) as cluster, dask.config.set(tls_config(cluster.files)):
        for name in ("w0", "w1"):
            cluster.start_worker(name, index | {"XDG_CACHE_HOME": str(folder / "able")})
        cluster.start_worker("w2", {"PIP_NO_INDEX": "1", "XDG_CACHE_HOME": str(folder / "unable")})
        yield cluster


@pytest.fixture
def crowd(cluster: LoopbackCluster) -> Iterator[Crowd]:
    with Cluster(cluster.address) as some, Workers(1, jobs=jobs()) as here:
        while len(some.workers) < len(cluster.workers):
            time.sleep(0.1)
        yield Crowd(some, Blobs(str(cluster.exchange)), here, None)


def on(cluster: LoopbackCluster) -> EngineConfig:
    return EngineConfig(dask=DaskConfig(scheduler=cluster.address, exchange=str(cluster.exchange)))


def made(cache: Path) -> list[str]:
    records = cache.glob("conrepair/environments/*/record.json")
    return sorted(path.parent.name.rpartition("-")[0] for path in records)


def done(crowd: Crowd, places: list[Path]) -> list[Outcome]:
    """What jobs come to that need the release, begun at once."""
    running = []
    for place in places:
        place.mkdir()
        job = Job("write", {"text": place.name}, place, frozenset({"onnx", RELEASE}), timeout=60.0)
        lane = crowd.idle_lane(job.needs)
        assert lane is not None
        running.append((lane, job, crowd.start(lane, job)))
    return [crowd.outcome(*each) for each in running]


def test_each_machine_makes_its_own_once_and_who_can_t_hands_its_jobs_on(
    folder: Path, cluster: LoopbackCluster, crowd: Crowd, tmp_path: Path
) -> None:
    outcomes = done(crowd, [tmp_path / str(number) for number in range(3)])
    assert all(isinstance(outcome, Success) for outcome in outcomes), outcomes
    assert made(folder / "able") == [RELEASE]
    assert made(folder / "unable") == []
    assert crowd.again
    for name in ("w0", "w1"):
        log = (cluster.folder / f"{name}.log").read_text()
        assert "Traceback" not in log


def test_campaigns_and_rechecks_come_to_the_same_without_any_here(
    folder: Path,
    index: dict[str, str],
    cluster: LoopbackCluster,
    crowd: Crowd,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def both(place: Path) -> tuple[Any, ...]:
        told = fuzz(CAMPAIGN, place, quiet=True)
        with ProgressDisplay(quiet=True) as display:
            again = recheck(place, tmp_path, display, workers=1, seconds=60.0)
        findings = [(item.name, item.blamed) for item in told.findings]
        return findings, told.counts, [(item.finding.name, item.verdict) for item in again]

    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "none"))
    with on(cluster).opened():
        there = both(tmp_path / "there")
    assert made(folder / "none") == []
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "able"))
    for name, value in index.items():
        monkeypatch.setenv(name, value)
    assert both(tmp_path / "here") == there
    assert there[2][0][1] == "there"


def test_an_audit_in_a_matrix_of_releases_comes_to_the_same(
    folder: Path, cluster: LoopbackCluster, crowd: Crowd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = onnx_networks.residual(tmp_path / "model.onnx")
    asked = {
        "name": "matrix",
        "models": [{"name": "residual", "path": model.name}],
        "dataset": {"synthetic": {"samples": 4}},
        "backends": ["libraries", "onnxruntime@99.0", "onnxruntime"],
    }

    def rows(place: Path) -> list[tuple[Any, ...]]:
        config = parse_config(asked | {"output": str(place)}, "audit.json")
        found = run_and_write(config, tmp_path, quiet=True).rows
        return [(row.backend, row.verdict, row.reason, row.problem) for row in found]

    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "none"))
    with on(cluster).opened():
        there = rows(tmp_path / "there")
    assert made(folder / "none") == []
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "able"))
    assert rows(tmp_path / "here") == there
    assert [row[:2] for row in there[1:]] == [
        ("onnxruntime@99.0", Verdict.EQUIVALENT),
        ("onnxruntime", Verdict.EQUIVALENT),
    ]


def test_a_release_that_no_machine_can_have_is_said_with_their_names(
    cluster: LoopbackCluster, crowd: Crowd, tmp_path: Path
) -> None:
    for name in ("w0", "w1"):
        cluster.kill(name)
    while len(crowd._cluster.workers) > 1:
        time.sleep(0.1)
    for number in range(2):
        begun = time.monotonic()
        (failed,) = done(crowd, [tmp_path / str(number)])
        assert isinstance(failed, Failure)
        assert failed.kind == "library"
        assert failed.message.startswith(f"w2: environment {RELEASE} could not be made: the package index")
    assert time.monotonic() - begun < 2, "it isn't tried for each job"

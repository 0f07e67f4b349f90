"""A cluster on loopback with TLS: what it does is what this machine does, whatever dies meanwhile."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed")
pytest.importorskip("cryptography")

import dask
import onnx_networks
from crowd_audit import CAMPAIGN, config_of, document, entries
from crowd_cluster import PATIENCE, LoopbackCluster, tls_config, until

from conrepair.application.config.model import EngineConfig
from conrepair.application.engine.job_table import jobs
from conrepair.application.jobs.values import ConversionStep
from conrepair.application.pipeline.audit import run_and_write
from conrepair.formats.converters.all_converters import converter
from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import Model
from conrepair.ground.runtime.errors import DeviceError, ExitCode, UsageError
from conrepair.ground.runtime.files.whole import sha256_of
from conrepair.ground.runtime.processes.workers import Failure, Job, Outcome, Success, Workers
from conrepair.ground.runtime.shown import progress
from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair_crowd.blobs import Blobs
from conrepair_crowd.cluster import Cluster
from conrepair_crowd.engine import DaskConfig
from conrepair_crowd.executor import Crowd
from conrepair_lab.campaigns.fuzzing import FINDINGS
from conrepair_lab.campaigns.generating import GenerationRequest, generate
from conrepair_lab.generate.generated import BLOCK
from conrepair_lab.generate.wishes import Wishes
from conrepair_lab.runs.fuzzing import fuzz

pytestmark = [pytest.mark.slow, pytest.mark.workers, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoopbackCluster]:
    with LoopbackCluster(tmp_path_factory.mktemp("cluster")) as cluster, dask.config.set(tls_config(cluster.files)):
        yield cluster


@pytest.fixture
def crowd(cluster: LoopbackCluster) -> Iterator[Crowd]:
    for name in {"w0", "w1", "w2"} - set(cluster.workers):
        cluster.start_worker(name)
    with Cluster(cluster.address, patience=PATIENCE) as some, Workers(1, jobs=jobs()) as here:
        until(lambda: len(some.workers) == 3)
        yield Crowd(some, Blobs(str(cluster.exchange)), here, None)


def start(crowd: Crowd, place: Path, kind: str, **payload: Any) -> Callable[[], Outcome]:
    place.mkdir()
    job = Job(kind, payload, place, timeout=60.0)
    lane = until(lambda: crowd.idle_lane(job.needs))
    future = crowd.start(lane, job)
    return lambda: crowd.outcome(lane, job, future)


def at_work(crowd: Crowd) -> str:
    """The name of the worker that has a job."""

    def name() -> str:
        client = crowd._cluster._client()
        busy = [address for address, keys in client.processing().items() if keys]
        return str(crowd._cluster.workers[busy[0]]["name"]) if busy else ""

    return str(until(name))


# --- The same as here ---


def test_an_audit_comes_to_the_same_and_is_seen_meanwhile(
    cluster: LoopbackCluster,
    crowd: Crowd,
    right: tuple[Path, Path, dict[str, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(progress, "_PAGE_SECONDS", 0.0)
    monkeypatch.setattr(progress, "_LINE_SECONDS", 0.0)
    models, out, asked = right
    page, pages, over = tmp_path / "out" / "many.unfinished.html", list[str](), threading.Event()

    def look() -> None:
        while not over.wait(0.05):
            with contextlib.suppress(FileNotFoundError):
                pages.append(page.read_text())

    watching = threading.Thread(target=look)
    watching.start()
    config = DaskConfig(scheduler=cluster.address, exchange=str(cluster.exchange))
    with EngineConfig(dask=config).opened(quiet=False):
        run_and_write(config_of(asked, tmp_path / "out"), models, quiet=False)
    over.set()
    watching.join()
    assert document(tmp_path / "out") == document(out)
    assert entries(tmp_path / "out") == entries(out)
    for words in (
        "<td>execute</td>",
        "<td>localize</td>",
        "<td>repair</td>",
        *(f"<bdi>w{n}</bdi>" for n in range(3)),
    ):
        assert words in pages[-1]
    assert not page.exists()
    said = capsys.readouterr().err
    assert re.search(r"localize: \d+ of \d+, about .* left; jobs: w0 \d+, w1 \d+, w2 \d+, \d begun; sent", said)


def test_an_audit_by_object_storage(
    right: tuple[Path, Path, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = pytest.importorskip("moto.server")
    fsspec = pytest.importorskip("s3fs")
    models, out, asked = right
    storage = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    storage.start()
    host, port = storage.get_host_and_port()
    own = {"ENDPOINT_URL": f"http://{host}:{port}", "ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b"}
    for name, value in own.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    fsspec.S3FileSystem(skip_instance_cache=True).mkdir("bucket")
    try:
        with LoopbackCluster(tmp_path, workers=2) as cluster, dask.config.set(tls_config(cluster.files)):
            config = DaskConfig(scheduler=cluster.address, exchange="s3://bucket/place")
            with EngineConfig(dask=config).opened():
                run_and_write(config_of(asked, tmp_path / "out"), models, quiet=True)
    finally:
        storage.stop()
    assert document(tmp_path / "out") == document(out)
    assert entries(tmp_path / "out") == entries(out)


def test_generated_networks_are_the_same(cluster: LoopbackCluster, crowd: Crowd, tmp_path: Path) -> None:
    def generated(place: Path) -> dict[str, Any]:
        asked = GenerationRequest(Wishes(nodes=4), count=200, seed=5)
        with ProgressDisplay(quiet=True) as display:
            generate(asked, place, display)
        files = (file for file in place.rglob("*") if file.is_file() and file.name != "generated.json")
        return {file.relative_to(place).as_posix(): file.read_bytes() for file in files}

    here = generated(tmp_path / "here")
    config = DaskConfig(scheduler=cluster.address, exchange=str(cluster.exchange))
    with EngineConfig(dask=config).opened():
        there = generated(tmp_path / "there")
    assert len(here) > 2 * BLOCK
    assert there == here


def test_a_campaign_finds_the_same(cluster: LoopbackCluster, crowd: Crowd, tmp_path: Path) -> None:
    def findings(place: Path) -> tuple[Any, dict[str, bytes]]:
        told = fuzz(CAMPAIGN, place, quiet=True)
        files = {path.relative_to(place).as_posix(): path for path in (place / FINDINGS).rglob("*") if path.is_file()}
        ended = told.findings, told.counts, told.refusals, told.seen_in, told.suspicions, told.over
        return ended, {name: path.read_bytes() for name, path in files.items()}

    here = findings(tmp_path / "here")
    config = DaskConfig(scheduler=cluster.address, exchange=str(cluster.exchange))
    with EngineConfig(dask=config).opened():
        there = findings(tmp_path / "there")
    assert there == here
    assert here[1]


def test_a_client_that_was_killed_goes_on(
    cluster: LoopbackCluster, crowd: Crowd, right: tuple[Path, Path, dict[str, Any]], tmp_path: Path
) -> None:
    models, out, asked = right
    config = models / "audit.json"
    config.write_text(json.dumps(asked))
    words = ["run", str(config), "-q", "-o", str(tmp_path / "out"), "--engine", "dask"]
    words += ["--scheduler", cluster.address, "--exchange", str(cluster.exchange)]
    tls = {"CA_FILE": "ca", "CLIENT__CERT": "ca", "CLIENT__KEY": "key"}
    own = {f"DASK_DISTRIBUTED__COMM__TLS__{name}": cluster.files[file] for name, file in tls.items()}
    command = [sys.executable, "-m", "conrepair", *words]
    env = os.environ | own | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    first = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL)
    until(lambda: len(list((tmp_path / "out" / "store").glob("execute-*"))) > 1)
    first.kill()
    first.wait()
    kept = set(entries(tmp_path / "out"))
    again = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert again.returncode == ExitCode.MODEL_LOAD, again.stderr
    assert kept
    assert document(tmp_path / "out") == document(out)
    assert entries(tmp_path / "out") == entries(out)


# --- What dies, and what's missing ---


def test_files_go_there_and_back(crowd: Crowd, tmp_path: Path) -> None:
    (tmp_path / "words").write_text("of the client's")
    assert start(crowd, tmp_path / "a", "read", path=str(tmp_path / "words"))().value == {"text": "of the client's"}
    outcome = start(crowd, tmp_path / "b", "write", text="whole")()
    assert isinstance(outcome, Success)
    assert (tmp_path / "b" / "sub" / "out.txt").read_text() == "whole"
    failed = start(crowd, tmp_path / "c", "fail")()
    assert isinstance(failed, Failure)
    assert (failed.kind, failed.last_words) == ("exception", "converting layer 7")
    assert (tmp_path / "c" / "half.bin").read_bytes() == b"half-made", "whoever asks may look at it"


def test_a_crash_is_one_of_its_process_and_not_of_the_worker(crowd: Crowd, tmp_path: Path) -> None:
    failed = start(crowd, tmp_path / "a", "die", signal=11)()
    assert isinstance(failed, Failure)
    assert (failed.kind, failed.error_type) == ("crash", "SIGSEGV")
    assert len(crowd._cluster.workers) == 3


def test_a_worker_that_is_killed(cluster: LoopbackCluster, crowd: Crowd, tmp_path: Path) -> None:
    outcome = start(crowd, tmp_path / "a", "swell", mib=16, rests=6)
    time.sleep(2)
    cluster.kill(name := at_work(crowd))
    assert isinstance(outcome(), Success)
    assert name not in crowd.jobs


def test_a_scheduler_that_comes_back(cluster: LoopbackCluster, crowd: Crowd, tmp_path: Path) -> None:
    outcome = start(crowd, tmp_path / "a", "swell", mib=16, rests=4)
    at_work(crowd)
    cluster.stop_scheduler()
    for name in list(cluster.workers):
        cluster.kill(name)
    cluster.start_scheduler()
    for name in ("w0", "w1", "w2"):
        cluster.start_worker(name)
    assert isinstance(outcome(), Success)


def test_what_kills_one_machine_after_the_other_is_a_failure(
    cluster: LoopbackCluster, crowd: Crowd, tmp_path: Path
) -> None:
    outcome = start(crowd, tmp_path / "a", "swell", mib=16, rests=50)
    found: list[Outcome] = []
    waits = threading.Thread(target=lambda: found.append(outcome()))
    waits.start()
    while waits.is_alive():
        before = at_work(crowd)
        cluster.kill(before)
        cluster.start_worker(before)
        waits.join(3.0)
    assert isinstance(found[0], Failure)
    assert (found[0].kind, found[0].error_type) == ("crash", "KilledWorker")


def test_what_no_machine_has_is_said_with_their_names(crowd: Crowd, tmp_path: Path) -> None:
    failed = start(crowd, tmp_path / "a", "lack_library")()
    assert isinstance(failed, Failure)
    assert failed.kind == "library"
    assert failed.message.startswith("w0, w1, w2: the library onnxsim")
    full = start(crowd, tmp_path / "b", "disk_full")()
    assert isinstance(full, Failure)
    assert full.kind == "storage"
    assert full.message.startswith("w0, w1, w2: ")
    assert crowd.again == 4


def test_what_one_machine_lacks_another_does(cluster: LoopbackCluster, crowd: Crowd, tmp_path: Path) -> None:
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "onnxsim.py").write_text("raise ModuleNotFoundError('none here', name='onnxsim')")
    model = onnx_networks.residual(tmp_path / "model.onnx")
    before = set(crowd._cluster.workers)
    for name in ("w0", "w1"):
        cluster.kill(name)
        cluster.start_worker(name, {"PYTHONPATH": str(tmp_path / "without")})
    until(lambda: len(set(crowd._cluster.workers) - before) == 2)  # those that were killed may be known for a while
    step = converter("onnx-onnxsim")
    told, source = ConversionStep.of(step, step.complete({})), Model("onnx", str(model), model_sha256(model))
    outcomes = [start(crowd, tmp_path / str(number), "convert", model=source, step=told) for number in range(3)]
    ended = [outcome() for outcome in outcomes]
    assert all(isinstance(outcome, Success) for outcome in ended), ended
    assert crowd.again
    for name in ("w0", "w1"):
        cluster.kill(name)


def test_what_was_sent_and_is_another_is_no_result_of_the_job(
    cluster: LoopbackCluster, crowd: Crowd, tmp_path: Path
) -> None:
    (tmp_path / "words").write_text("of the client's")
    sha256 = sha256_of(tmp_path / "words")
    place = cluster.exchange / sha256[:2] / sha256
    place.parent.mkdir(exist_ok=True)
    place.write_text("of somebody's!!")
    for name in list(cluster.workers):  # they may have it
        cluster.kill(name)
    for name in ("w0", "w1", "w2"):
        cluster.start_worker(name)
    failed = start(crowd, tmp_path / "a", "read", path=str(tmp_path / "words"))()
    assert isinstance(failed, Failure)
    assert failed.kind == "changed"
    assert not failed.repeatable
    place.unlink()
    assert isinstance(start(crowd, tmp_path / "b", "read", path=str(tmp_path / "words"))(), Success)


def test_a_scheduler_that_never_answers_ends_the_command(cluster: LoopbackCluster) -> None:
    with pytest.raises(DeviceError, match="no Dask scheduler answers"), Cluster("tls://127.0.0.1:1", patience=0.5):
        pass
    with pytest.raises(UsageError, match="encryption required"), Cluster("tcp://127.0.0.1:1"):
        pass


def test_a_cluster_that_strangers_reach_is_refused() -> None:
    with pytest.raises(UsageError, match="isn't encrypted"), Cluster("tcp://10.0.0.1:8786"):
        pass

"""Workers that are forked from one process: what they have from the start, and where each is a fresh interpreter."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import killing
import pytest
import worker_jobs
from job_tables import jobs_of

from conrepair.ground.runtime.files import whole
from conrepair.ground.runtime.processes import workers as module
from conrepair.ground.runtime.processes.confinement import OPEN
from conrepair.ground.runtime.processes.workers import Job, Success, Workers

JOBS = jobs_of(worker_jobs)
pytestmark = [
    pytest.mark.timeout(60),
    pytest.mark.workers,
    pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux alone"),
]


def done(workers: Workers, folder: Path, function: str = "loaded", **more: Any) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    outcome = workers.call(Job(function, {}, folder, **more))
    assert isinstance(outcome, Success), outcome
    return outcome.value


@pytest.mark.parametrize(
    ("imports", "needs", "modules", "threads"),
    [
        ({"": ["wave"], "onnx": ["sndhdr"]}, frozenset({"onnx"}), {"wave", "sndhdr"}, 1),
        ({"": ["wave"], "onnx": ["sndhdr"]}, frozenset({"keras"}), {"wave"}, 1),
        ({"": ["no_such_module", "wave"]}, frozenset(), {"wave"}, 1),
        ({"": ["thread_at_import", "wave"]}, frozenset(), set(), 1),  # a fork would copy one thread of two
        (None, frozenset(), set(), 1),
    ],
)
def test_a_worker_has_what_was_imported_before_unless_that_started_a_thread(
    imports: Mapping[str, Sequence[str]] | None,
    needs: frozenset[str],
    modules: set[str],
    threads: int,
    tmp_path: Path,
) -> None:
    with Workers(1, jobs=JOBS, imports=imports) as workers:
        found = done(workers, tmp_path / "job", needs=needs)
    assert {"wave", "sndhdr"} & {*found["modules"]} == modules
    assert found["threads"] == threads


@pytest.mark.parametrize("imports", [{}, None])
def test_a_worker_is_told_what_was_hashed_here_before_each_job(
    imports: Mapping[str, Sequence[str]] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Workers(1, jobs=JOBS, imports=imports) as workers:
        assert "(1, 2)" not in done(workers, tmp_path / "first", "hashes")["known"]
        monkeypatch.setitem(whole.HASHES, "(1, 2)", "ab")
        assert done(workers, tmp_path / "second", "hashes") == {"known": whole.HASHES}


def test_two_workers_are_of_one_process(tmp_path: Path) -> None:
    with Workers(2, jobs=JOBS, imports={}) as workers:
        lanes = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            lane = workers.idle_lane(frozenset())
            assert lane is not None
            job = Job("loaded", {}, tmp_path / name)
            lanes.append((lane, job, workers.start(lane, job)))
        found = [workers.outcome(*item) for item in lanes]
    assert all(isinstance(item, Success) for item in found)
    assert len({item.value["grandparent"] for item in found if isinstance(item, Success)}) == 1
    assert len({item.value["temporary"] for item in found if isinstance(item, Success)}) == 2


@pytest.mark.parametrize(
    ("more", "forks"), [({"reach": OPEN}, True), ({"environment": {"XLA_FLAGS": "x"}}, True), ({}, False)]
)
def test_others_are_fresh_interpreters(
    more: dict[str, Any], forks: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What reaches further, what has another environment, and all where there's no Linux."""
    monkeypatch.setattr(module, "FORKS", forks)
    with Workers(1, jobs=JOBS, imports={"": ["wave"]}) as workers:
        found = done(workers, tmp_path / "job", **more)
    assert "wave" not in found["modules"]
    assert found["grandparent"] == os.getpid()


def test_a_template_that_is_killed_takes_its_workers_along_and_those_behind_are_fresh(tmp_path: Path) -> None:
    with Workers(1, jobs=JOBS, imports={"": ["wave"]}) as workers:
        before = done(workers, tmp_path / "one")
        lane = workers.idle_lane(frozenset())
        assert lane is not None
        assert lane.process is not None
        os.kill(before["grandparent"], signal.SIGKILL)
        killing.wait_until(lambda: lane.process is None or not lane.process.active, 10)
        after = done(workers, tmp_path / "two")
    assert after["grandparent"] == os.getpid()
    assert "wave" not in after["modules"]

"""Worker processes, for real: exceptions, signals, time limits, output, and what comes after."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import killing
import pytest
import worker_jobs
from job_tables import jobs_of

from conrepair.ground.runtime.errors import ExitCode
from conrepair.ground.runtime.processes import memory, workers
from conrepair.ground.runtime.processes.executor import InProcess
from conrepair.ground.runtime.processes.workers import Failure, Job, Success, Workers

JOBS = jobs_of(worker_jobs)
pytestmark = [pytest.mark.timeout(60), pytest.mark.workers]


@pytest.fixture(scope="module", params=[None, {}], ids=["fresh", "forked"])
def shared(request: pytest.FixtureRequest) -> Iterator[Workers]:
    """One warm process for all tests that leave it usable: an interpreter of its own, or forked from another."""
    with Workers(1, jobs=JOBS, imports=request.param) as workers:
        yield workers


def job(folder: Path, function: str, *, timeout: float = 30.0, needs: str = "", **payload: Any) -> Job:
    folder = folder / "job"
    folder.mkdir(exist_ok=True)
    return Job(function, payload, folder, frozenset(needs.split()), timeout)


def failure(workers: Workers, wanted: Job) -> Failure:
    outcome = workers.call(wanted)
    assert isinstance(outcome, Failure), outcome
    return outcome


def pid(workers: Workers, folder: Path) -> int:
    outcome = workers.call(job(folder, "echo"))
    assert isinstance(outcome, Success), outcome
    return outcome.value["pid"]


# --- Answers ---


def test_a_job_gets_its_payload_and_its_folder(shared: Workers, tmp_path: Path) -> None:
    outcome = shared.call(job(tmp_path, "echo", text="ü", numbers=[1, 2.5], none=None))
    assert isinstance(outcome, Success)
    assert outcome.value["payload"] == {"text": "ü", "numbers": [1, 2.5], "none": None}
    assert outcome.seconds >= 0
    written = shared.call(job(tmp_path, "write", text="whole"))
    assert isinstance(written, Success)
    assert (tmp_path / "job" / written.value["file"]).read_text() == "whole"


def test_a_job_runs_in_another_process_which_stays_warm(shared: Workers, tmp_path: Path) -> None:
    first = pid(shared, tmp_path)
    assert first != os.getpid()
    assert pid(shared, tmp_path) == first
    failure(shared, job(tmp_path, "fail"))
    assert pid(shared, tmp_path) == first, "an exception must not cost the worker"


@pytest.mark.parametrize("wanted", [None, "active"])
def test_waiting_threads_of_openmp_are_passive_unless_asked_otherwise(
    wanted: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    if wanted is not None:
        monkeypatch.setenv("OMP_WAIT_POLICY", wanted)
    with Workers(1, jobs=JOBS) as workers:
        outcome = workers.call(job(tmp_path, "variable", name="OMP_WAIT_POLICY"))
    assert isinstance(outcome, Success)
    assert outcome.value == {"value": wanted or "passive"}


def test_leaving_the_block_ends_the_processes(tmp_path: Path) -> None:
    with Workers(1, jobs=JOBS) as workers:
        worker = pid(workers, tmp_path)
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)


def test_leaving_the_block_by_an_error_doesnt_wait_for_the_job(tmp_path: Path) -> None:
    def run() -> None:
        with Workers(1, jobs=JOBS) as workers:
            pid(workers, tmp_path)
            lane = workers.idle_lane(frozenset())
            assert lane is not None
            workers.start(lane, job(tmp_path, "hang"))
            raise KeyboardInterrupt

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run()
    assert time.monotonic() - started < 10


# --- Exceptions ---


def test_an_exception_becomes_a_failure_with_type_message_and_last_words(shared: Workers, tmp_path: Path) -> None:
    result = failure(shared, job(tmp_path, "fail"))
    assert result.kind == "exception"
    assert result.error_type == "ValueError"
    assert result.message == "axis 3 is out of range\nsecond line"
    assert result.last_words == "converting layer 7"
    assert result.exit_code == ExitCode.EXECUTION
    assert "worker_jobs.py" in result.traceback
    assert "raise ValueError" in result.traceback
    assert result.repeatable
    assert str(result) == "ValueError: axis 3 is out of range"


@pytest.mark.parametrize(
    ("function", "name", "code"),
    [("refuse_data", "DataError", ExitCode.USAGE), ("refuse_model", "ModelLoadError", ExitCode.MODEL_LOAD)],
)
def test_our_own_errors_are_refusals_with_their_exit_code(
    shared: Workers, tmp_path: Path, function: str, name: str, code: ExitCode
) -> None:
    result = failure(shared, job(tmp_path, function))
    assert (result.kind, result.error_type, result.exit_code) == ("refused", name, int(code))
    assert result.repeatable
    assert str(result) == result.message, "our own messages are shown whole, without the class's name"


def test_running_out_of_memory_in_python(shared: Workers, tmp_path: Path) -> None:
    result = failure(shared, job(tmp_path, "out_of_memory"))
    assert (result.kind, result.error_type) == ("memory", "MemoryError")
    assert not result.repeatable


@pytest.mark.parametrize("function", ["disk_full", "disk_full_in_disguise", "file_too_large"])
def test_a_full_disk_is_called_so(shared: Workers, tmp_path: Path, function: str) -> None:
    result = failure(shared, job(tmp_path, function))
    assert result.kind == "storage"
    assert "no space left" in result.message
    assert str(tmp_path) in result.message
    assert "`output`" in result.message, "it must say what to do"
    assert not result.repeatable
    assert pid(shared, tmp_path) > 0


@pytest.mark.parametrize(("function", "name"), [("leave", "SystemExit"), ("interrupt", "KeyboardInterrupt")])
def test_leaving_by_an_exception_of_another_kind_is_a_failure(
    shared: Workers, tmp_path: Path, function: str, name: str
) -> None:
    result = failure(shared, job(tmp_path, function))
    assert (result.kind, result.error_type) == ("exception", name)
    assert pid(shared, tmp_path) > 0


def test_an_exception_that_cant_say_what_it_is(shared: Workers, tmp_path: Path) -> None:
    result = failure(shared, job(tmp_path, "speechless"))
    assert (result.kind, result.error_type) == ("exception", "_Speechless")


@pytest.mark.parametrize("place", ["worker_jobs:no_such_function", "no_such_module_at_all:run"])
def test_a_function_that_doesnt_exist(tmp_path: Path, place: str) -> None:
    with Workers(1, jobs={"missing": place}) as workers:
        result = failure(workers, Job("missing", {}, tmp_path / "job"))
    assert result.kind == "exception"
    assert result.error_type in {"AttributeError", "ModuleNotFoundError"}


@pytest.mark.parametrize(
    "name", ["", "echo2", "fail", "worker_jobs:echo", "worker_jobs.echo", "os:getcwd", "__class__"]
)
def test_what_isnt_in_the_table_doesnt_run(tmp_path: Path, name: str) -> None:
    table = {"echo": "worker_jobs:echo"}
    folder = tmp_path / "job"
    folder.mkdir()
    with Workers(1, jobs=table) as workers:
        refused = failure(workers, Job(name, {}, folder))
        assert isinstance(workers.call(Job("echo", {}, folder)), Success)
    here = InProcess(table)
    also = here.outcome(here, Job(name, {}, folder), here.start(here, Job(name, {}, folder)))
    assert isinstance(also, Failure)
    for found in (refused, also):
        assert (found.kind, found.error_type) == ("refused", "UsageError")
        assert found.message == f"there's no job {name!r}: executors run echo, and nothing else"


# --- Values that can't be handed back ---


@pytest.mark.parametrize("what", ["function", "lock", "object"])
def test_a_value_that_json_cant_hold_is_the_jobs_failure(shared: Workers, tmp_path: Path, what: str) -> None:
    """Jobs return JSON; one that doesn't must fail alone, not with the whole audit."""
    assert failure(shared, job(tmp_path, "answer", what=what)).kind == "exception"
    assert pid(shared, tmp_path) > 0


def test_a_value_that_cant_be_unpickled_doesnt_hang(tmp_path: Path) -> None:
    with Workers(1, jobs=JOBS) as workers:
        result = failure(workers, job(tmp_path, "answer", what="bomb", timeout=2.0))
        assert result.kind == "exception", "it's no matter of time"
        following = job(tmp_path, "echo")
        lane = workers.idle_lane(frozenset())
        assert lane is not None
        future = workers.start(lane, following)
        future.result(timeout=10)
        assert isinstance(workers.outcome(lane, following, future), Success)


# --- Deaths ---


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT])
def test_a_crash_is_named_after_its_signal_and_the_next_job_works(
    shared: Workers, tmp_path: Path, number: signal.Signals
) -> None:
    before = pid(shared, tmp_path)
    result = failure(shared, job(tmp_path, "die", signal=int(number)))
    assert (result.kind, result.error_type) == ("crash", number.name)
    assert "conv.cc:17: assertion failed: stride > 0" in result.last_words
    assert number.name in result.message
    assert "went on without it" in result.explanation
    assert result.traceback == ""
    assert result.exit_code == ExitCode.EXECUTION
    assert not result.repeatable
    after = pid(shared, tmp_path)
    assert after != before


def test_the_last_words_of_native_code_outlive_pythons_own_dump(shared: Workers, tmp_path: Path) -> None:
    """faulthandler adds a line for each Python frame; converters have dozens."""
    result = failure(shared, job(tmp_path, "die", signal=int(signal.SIGSEGV), depth=40))
    assert result.kind == "crash"
    assert "conv.cc:17: assertion failed: stride > 0" in result.last_words
    assert len(result.last_words) <= 3000


@pytest.mark.parametrize("full", ["no space left to write below /tmp (0 MiB free)", None])
def test_a_file_that_is_mapped_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: str | None
) -> None:
    """Writing to it raises no error: the kernel ends the process."""
    monkeypatch.setattr(workers, "full_disk", lambda *_: full)
    outcome = workers._crashed(job(tmp_path, "echo"), -signal.SIGBUS)
    assert (outcome.kind, str(outcome)) == (
        ("storage", full) if full else ("crash", "SIGBUS: the worker process died (SIGBUS)")
    )


def test_being_killed_means_memory(shared: Workers, tmp_path: Path) -> None:
    result = failure(shared, job(tmp_path, "die", signal=int(signal.SIGKILL)))
    assert (result.kind, result.error_type) == ("memory", "SIGKILL")
    assert "out of memory" in result.explanation
    assert "conv.cc:17" in result.last_words
    assert not result.repeatable
    assert pid(shared, tmp_path) > 0


def test_native_code_that_ends_the_process(shared: Workers, tmp_path: Path) -> None:
    result = failure(shared, job(tmp_path, "exit_at_once", code=7))
    assert (result.kind, result.error_type) == ("crash", "exit code 7")
    assert pid(shared, tmp_path) > 0


def test_native_code_that_ends_the_process_as_if_all_were_well(shared: Workers, tmp_path: Path) -> None:
    """It may take as long as the time limit to notice, but not longer."""
    result = failure(shared, job(tmp_path, "exit_at_once", code=0, timeout=1.0))
    assert result.kind in {"crash", "timeout"}
    assert pid(shared, tmp_path) > 0


def test_a_worker_that_dies_while_it_is_idle_is_replaced(tmp_path: Path) -> None:
    """The kernel's out-of-memory killer takes the largest process, busy or not."""
    with Workers(1, jobs=JOBS) as workers:
        worker = pid(workers, tmp_path)
        os.kill(worker, signal.SIGKILL)
        time.sleep(0.5)  # for the pool to notice
        assert pid(workers, tmp_path) != worker


def test_a_job_that_takes_too_long_is_stopped_and_the_next_one_works(shared: Workers, tmp_path: Path) -> None:
    before = pid(shared, tmp_path)
    started = time.monotonic()
    result = failure(shared, job(tmp_path, "hang", timeout=0.5))
    assert time.monotonic() - started < 10
    assert (result.kind, result.error_type) == ("timeout", "Timeout")
    assert "0.5 s" in result.message
    assert result.last_words == "pass 3 of 1000000"
    assert "limits.seconds" in result.explanation
    assert not result.repeatable
    after = pid(shared, tmp_path)
    assert after != before
    with pytest.raises(ProcessLookupError):
        os.kill(before, 0)


def test_a_job_that_doesnt_end_when_asked_is_killed(shared: Workers, tmp_path: Path) -> None:
    before = pid(shared, tmp_path)
    assert failure(shared, job(tmp_path, "hang_deaf", timeout=0.3)).kind == "timeout"
    assert pid(shared, tmp_path) != before


# --- Output ---


def test_output_of_python_and_of_native_code_is_captured(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with Workers(1, jobs=JOBS) as workers:  # started while capfd watches, so that a leak would be seen
        assert isinstance(workers.call(job(tmp_path, "talk")), Success)
        spoken = (tmp_path / "job.log").read_text().splitlines()
        assert sorted(spoken) == ["native err", "native out", "python err", "python out"]
        result = failure(workers, job(tmp_path, "talk", fails=True))
        assert sorted(result.last_words.splitlines()) == sorted(spoken)
        assert failure(workers, job(tmp_path, "die", signal=int(signal.SIGKILL))).last_words.startswith("conv.cc")
        assert failure(workers, job(tmp_path, "fail")).last_words == "converting layer 7", "only the job's own"
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_last_words_are_the_last_and_few(shared: Workers, tmp_path: Path) -> None:
    result = failure(shared, job(tmp_path, "talk_much"))
    lines = result.last_words.splitlines()
    assert lines[-1] == "line 19999 \ufffd", "bytes that aren't UTF-8 are replaced"
    assert 10 <= len(lines) <= 20
    assert len(result.last_words) <= 3000


def test_a_log_that_cant_be_written_doesnt_stop_the_job(shared: Workers, tmp_path: Path) -> None:
    wanted = job(tmp_path, "talk")
    (tmp_path / "job.log").mkdir()
    assert isinstance(shared.call(wanted), Success)
    assert failure(shared, job(tmp_path, "fail")).last_words == ""


# --- Lanes ---


def test_the_lane_that_has_imported_the_needs_is_preferred() -> None:
    workers = Workers(3, jobs=JOBS)
    first = workers.idle_lane(frozenset())
    assert first is not None
    first.imported |= {"torch"}
    assert workers.idle_lane(frozenset({"torch"})) is first
    second = workers.idle_lane(frozenset({"onnx"}))
    assert second is not None
    assert second is not first, "a fresh one is better than one full of other things"
    second.imported |= {"torch", "tensorflow"}
    assert workers.idle_lane(frozenset({"torch"})) is first, "least of the rest"
    assert workers.idle_lane(frozenset({"torch", "tensorflow"})) is second
    first.busy = True
    assert workers.idle_lane(frozenset({"torch"})) is second
    for _ in range(2):
        lane = workers.idle_lane(frozenset())
        assert lane is not None
        lane.busy = True
    assert workers.idle_lane(frozenset({"torch"})) is None


def test_jobs_go_back_to_the_process_that_has_what_they_need(tmp_path: Path) -> None:
    with Workers(2, jobs=JOBS) as workers:

        def run(needs: str) -> int:
            outcome = workers.call(job(tmp_path, "echo", needs=needs))
            assert isinstance(outcome, Success)
            return outcome.value["pid"]

        torch, tensorflow = run("torch"), run("tensorflow")
        assert torch != tensorflow
        assert [run("torch"), run("tensorflow"), run("torch")] == [torch, tensorflow, torch]
        failure(workers, job(tmp_path, "die", signal=int(signal.SIGKILL), needs="torch"))
        lanes = [workers.idle_lane(frozenset({name})) for name in ("torch", "tensorflow")]
        assert all(lane is not None and "torch" not in lane.imported for lane in lanes), "the new process has nothing"


def test_a_lane_is_busy_until_its_outcome_is_taken(tmp_path: Path) -> None:
    with Workers(1, jobs=JOBS) as workers:
        wanted = job(tmp_path, "echo")
        lane = workers.idle_lane(frozenset())
        assert lane is not None
        future = workers.start(lane, wanted)
        assert workers.idle_lane(frozenset()) is None
        with pytest.raises(RuntimeError, match="no idle worker"):
            workers.call(wanted)
        assert isinstance(workers.outcome(lane, wanted, future), Success)
        assert workers.idle_lane(frozenset()) is lane


def test_no_process_is_started_before_it_is_needed() -> None:
    before = threading.active_count()
    with Workers(64, jobs=JOBS):
        assert threading.active_count() == before


# --- Environments ---


def in_environment(folder: Path, **environment: str) -> Job:
    return dataclasses.replace(job(folder, "variable", name="XLA_FLAGS"), environment=environment)


def test_a_job_gets_a_process_of_its_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "of-the-user")
    with Workers(1, jobs=JOBS) as workers:
        for wanted, flags in (({}, "of-the-user"), ({"XLA_FLAGS": "--a"}, "--a"), ({"XLA_FLAGS": "--b"}, "--b")):
            outcome = workers.call(in_environment(tmp_path, **wanted))
            assert isinstance(outcome, Success)
            assert outcome.value["value"] == flags


def test_processes_of_other_environments_end_when_there_are_too_many(tmp_path: Path) -> None:
    with Workers(2, jobs=JOBS) as workers:
        lanes = {}
        for flags in ("a", "b", "c", "a", "d"):
            lanes[flags] = workers.idle_lane(frozenset(), environment={"XLA_FLAGS": flags})
            assert isinstance(workers.call(in_environment(tmp_path, XLA_FLAGS=flags)), Success)
        workers.idle_lane(frozenset(), environment={"XLA_FLAGS": "e"})
        assert [name for name, lane in lanes.items() if lane is not None and lane.process] == ["a", "d"]
        plain = workers.call(job(tmp_path, "echo"))
        assert isinstance(plain, Success)
        lane = workers.idle_lane(frozenset(), environment={"XLA_FLAGS": "a"})
        assert lane is lanes["a"]
        lane.busy = True
        assert workers.idle_lane(frozenset(), environment={"XLA_FLAGS": "d"}) is lanes["d"]
        lanes["d"].busy = True
        assert workers.idle_lane(frozenset()) is None, "they count together"


@pytest.mark.parametrize("name", ["LD_PRELOAD", "PYTHONPATH", "PATH", "TMPDIR", "XLA_FLAGS_", "CXX"])
def test_jobs_set_no_other_variables(name: str, tmp_path: Path) -> None:
    with Workers(1, jobs=JOBS) as workers, pytest.raises(ValueError, match=f"can't set {name}"):
        workers.call(in_environment(tmp_path, **{name: "x"}))


def test_compilers_keep_what_they_make_in_the_workers_own_folder(shared: Workers, tmp_path: Path) -> None:
    found = [
        shared.call(job(tmp_path, "variable", name=name))
        for name in ("TMPDIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "POCL_CACHE_DIR")
    ]
    assert len({outcome.value["value"] for outcome in found if isinstance(outcome, Success)}) == 1


def test_a_worker_that_keeps_too_much_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_MOST_KEPT", 1 << 20)
    with Workers(1, jobs=JOBS) as own:
        first, lane = pid(own, tmp_path), own.idle_lane(frozenset())
        assert lane is not None
        assert lane.folder is not None
        kept = lane.folder
        (kept / "inductor").mkdir()
        (kept / "inductor" / "kernel.so").write_bytes(bytes(1 << 19))
        assert pid(own, tmp_path) == first
        (kept / "inductor" / "another.so").write_bytes(bytes(1 << 20))
        assert pid(own, tmp_path) != first
        assert not kept.exists()


def test_one_process_has_one_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, wanted = InProcess(JOBS), in_environment(tmp_path, XLA_FLAGS="--a")
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    refused = here.outcome(here, wanted, here.start(here, wanted))
    assert isinstance(refused, Failure)
    assert "started with XLA_FLAGS='--a'" in str(refused)
    monkeypatch.setenv("XLA_FLAGS", "--a")
    assert isinstance(here.outcome(here, wanted, here.start(here, wanted)), Success)


# --- Bounds ---


def watched(workers: Workers, wanted: Job) -> Success | Failure:
    """Run a job as a scheduler does."""
    lane = workers.idle_lane(frozenset())
    assert lane is not None
    future = workers.start(lane, wanted)
    while not future.done():
        workers.stop_oversized()
        time.sleep(0.02)
    return workers.outcome(lane, wanted, future)


def test_a_job_that_takes_too_much_memory_is_stopped(tmp_path: Path) -> None:
    with Workers(1, memory_gb=0.5, jobs=JOBS) as workers:
        outcome = watched(workers, job(tmp_path, "swell", mib=4096))
        assert isinstance(outcome, Failure)
        assert outcome.kind == "memory"
        assert "0.5 are allowed" in outcome.message
        assert "limits.memory_gb" in outcome.explanation
        after = watched(workers, job(tmp_path, "swell", mib=64))
        assert isinstance(after, Success)


def test_what_a_worker_kept_is_not_the_next_job_s_to_answer_for(tmp_path: Path) -> None:
    with Workers(1, memory_gb=0.5, jobs=JOBS) as workers:
        first = watched(workers, job(tmp_path, "swell", mib=320, keeps=True))
        second = watched(workers, job(tmp_path, "swell", mib=320))
        assert isinstance(first, Success)
        assert isinstance(second, Success)
        assert first.value["pid"] != second.value["pid"]


def test_by_default_the_machine_s_memory_is_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "free_for_jobs", lambda: 1 << 29)
    with Workers(2, jobs=JOBS) as some:
        outcome = watched(some, job(tmp_path, "swell", mib=4096))
        assert isinstance(outcome, Failure)
        assert outcome.kind == "memory"
        assert "0.5 were free for jobs" in outcome.message
        assert "limits.memory_gb" in outcome.explanation
        assert isinstance(watched(some, job(tmp_path, "swell", mib=64)), Success)
        alone = some.call(job(tmp_path, "swell", mib=4096))
        assert isinstance(alone, Failure)
        assert alone.kind == "memory"


def test_of_several_the_largest_is_stopped_and_what_idle_ones_kept_goes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "free_for_jobs", lambda: 1 << 30)
    with Workers(2, jobs=JOBS) as some:
        kept = watched(some, job(tmp_path, "swell", mib=700, keeps=True, needs="kept"))
        second = watched(some, job(tmp_path, "swell", mib=600, needs="other"))
        assert isinstance(kept, Success)
        assert isinstance(second, Success)
        assert [lane.process is None for lane in some._all()].count(True) == 1


def test_what_is_free_leaves_a_reserve_and_knows_containers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\nHugePages_Total: 0\n")
    monkeypatch.setattr(memory, "_MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_GROUPS", ((tmp_path, "max", "current", "inactive_file"),))
    assert memory.free_for_jobs() == 7 << 30
    (tmp_path / "max").write_text("max\n")
    assert memory.free_for_jobs() == 7 << 30
    (tmp_path / "max").write_text(f"{5 << 30}\n")
    (tmp_path / "current").write_text(f"{2 << 30}\n")
    (tmp_path / "memory.stat").write_text(f"anon {1 << 30}\ninactive_file {1 << 30}\n")
    assert memory.free_for_jobs() == 3 << 30
    (tmp_path / "meminfo").write_text("MemTotal: 16777216 kB\nMemAvailable: 1024 kB\n")
    assert memory.free_for_jobs() == 1 << 30
    (tmp_path / "meminfo").write_text("MemTotal: 16777216 kB\n")
    assert memory.free_for_jobs() is None


def test_within_the_bound_nothing_is_stopped(shared: Workers, tmp_path: Path) -> None:
    assert isinstance(watched(shared, job(tmp_path, "swell", mib=640)), Success)


@pytest.mark.parametrize("function", ["hang", "hang_holding_python"])
def test_workers_end_when_the_main_process_is_killed(tmp_path: Path, function: str) -> None:
    """Even one whose native code doesn't let Python run."""
    program = f"""
import sys
from pathlib import Path
from conrepair.ground.runtime.processes.workers import Job, Workers

if __name__ == "__main__":
    folder = Path(sys.argv[1]) / "job"
    folder.mkdir()
    jobs = {{"wanted": "worker_jobs:{function}"}}
    Workers(1, jobs=jobs).call(Job("wanted", {{"tally": str(folder / "tally")}}, folder))
"""
    (tmp_path / "main.py").write_text(program)
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "main.py"), str(tmp_path)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,
    )
    killing.wait_until((tmp_path / "job" / "tally").exists, 30)
    assert len(killing.living(process.pid)) > 1
    killing.kill(process, everybody=False)
    assert killing.living(process.pid) == []

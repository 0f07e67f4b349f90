"""The scheduler with real workers and a real store: what is run, what is reused, what is blocked."""

from __future__ import annotations

import math
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import worker_jobs
from job_tables import jobs_of

from conrepair.application.engine import scheduler as module
from conrepair.application.engine.job_table import JOBS
from conrepair.application.engine.scheduler import NotStoredError, Scheduler
from conrepair.application.engine.task import Result, Task
from conrepair.application.pipeline.stages.preparation import source_task
from conrepair.application.pipeline.stages.state import model_of
from conrepair.application.pipeline.subject import Subject
from conrepair.ground.runtime.errors import ConrepairError, DataError, StorageError, ToolEnvironmentError
from conrepair.ground.runtime.files.store import Entry, Store
from conrepair.ground.runtime.processes.deadline import ends_after
from conrepair.ground.runtime.processes.workers import Workers

pytestmark = [pytest.mark.timeout(60), pytest.mark.workers]

OWN = jobs_of(worker_jobs)


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    with Workers(2, jobs={**JOBS, **OWN}) as workers:
        yield workers


def told(*, advance: Any = lambda _: None, show: Any = lambda _: None) -> Any:
    """A stage that hands on what it's told."""
    return SimpleNamespace(advance=advance, show=show)


class Room:
    """A store in a folder, and a file in which jobs leave a line each time that they run."""

    def __init__(self, folder: Path, workers: Workers) -> None:
        self.root = folder / "store"
        self.tally = folder / "tally"
        self.workers = workers

    def run(
        self, *tasks: Task, reuse: bool = True, prepare: Callable[[Task], None] = lambda _: None
    ) -> dict[str, Result]:
        """As a new run of the program does."""
        with Store(self.root, fresh=not reuse) as store:
            scheduler = Scheduler(store, self.workers, reuse=reuse, prepare=prepare)
            scheduler.run(tasks)
        return scheduler.results

    def task(self, name: str, kind: str = "echo", *depends: str, timeout: float = 30.0, **payload: Any) -> Task:
        whole = {"tally": str(self.tally), "name": name} | payload
        return Task(name, kind, lambda _: whole, depends, timeout=timeout, keep_failure=True)

    @property
    def ran(self) -> list[str]:
        """Names of the jobs that really ran, since this was last asked."""
        lines = sorted(self.tally.read_text().splitlines()) if self.tally.exists() else []
        self.tally.unlink(missing_ok=True)
        return lines

    @property
    def kept(self) -> list[str]:
        folders = [*self.root.iterdir(), *(self.root / ".work").iterdir()]
        return sorted(path.name.partition("-")[0] for path in folders if path.is_dir() and path.name != ".work")


@pytest.fixture
def room(tmp_path: Path, workers: Workers) -> Room:
    return Room(tmp_path, workers)


def entry(result: Result) -> Entry:
    assert result.entry is not None, result
    return result.entry


# --- Running ---


def test_a_task_s_result_and_files(room: Room) -> None:
    result = room.run(room.task("a", "write", text="whole"))["a"]
    assert entry(result).result == {"file": "sub/out.txt"}
    assert (entry(result).folder / "sub" / "out.txt").read_text() == "whole"
    assert (result.failure, result.blocked_by, result.reused) == (None, None, False)
    assert result.seconds >= 0
    assert room.kept == ["write"], "no scratch folder and no log is left"


def test_a_task_is_given_the_results_that_it_depends_on(room: Room) -> None:
    def payload(entries: Mapping[str, Entry]) -> dict[str, Any]:
        assert set(entries) == {"first"}
        return {"path": str(entries["first"].folder / entries["first"].result["file"])}

    second = Task("second", "read", payload, ("first",))
    results = room.run(second, room.task("first", "write", text="passed on"))
    assert entry(results["second"]).result == {"text": "passed on"}


def test_a_task_may_depend_on_one_of_an_earlier_call(room: Room) -> None:
    scheduler = Scheduler(Store(room.root), room.workers)
    scheduler.run([room.task("a")])
    scheduler.run([room.task("b", "echo", "a")])
    assert set(scheduler.results) == {"a", "b"}
    assert room.ran == ["a", "b"]


def test_a_task_that_waits_for_nothing(room: Room) -> None:
    with pytest.raises(RuntimeError, match=r"wait for nothing: \['b'\]"):
        room.run(room.task("a"), room.task("b", "echo", "missing"))


def test_every_finished_task_is_announced_once(room: Room) -> None:
    room.run(room.task("stored"))
    scheduler = Scheduler(Store(room.root), room.workers)
    announced: list[str] = []
    tasks = [room.task("stored"), room.task("bad", "fail"), room.task("blocked", "echo", "bad"), room.task("good")]
    scheduler.run(tasks, told(advance=announced.append))
    assert sorted(announced) == ["bad", "blocked", "good", "stored"]


def test_a_running_task_says_what_it_has_done(room: Room, tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    task = room.task("a", "meet", room=str(tmp_path / "room"), patience=2.5, leaves=True)
    folders: list[Path] = []

    def progress(folder: Path) -> str:
        folders.append(folder)
        return "half" if len(folders) > 1 else ""

    shown: list[str] = []
    scheduler = Scheduler(Store(room.root), room.workers)
    scheduler.run([replace(task, progress=progress)], told(show=shown.append))
    assert shown
    assert set(shown) == {"a: half"}
    assert len(shown) == len(folders) - 1
    assert {folder.is_relative_to(room.root) for folder in folders} == {True}


@pytest.mark.parametrize("alone", [False, True])
def test_as_many_run_at_a_time_as_there_are_workers_but_for_those_that_run_alone(
    room: Room, tmp_path: Path, alone: bool
) -> None:
    (tmp_path / "room").mkdir()
    common = {"room": str(tmp_path / "room"), "patience": 0.2 if alone else 20.0, "leaves": alone}
    one, two = (room.task(name, "meet", **common) for name in "ab")
    results = room.run(replace(one, alone=alone), two)
    assert [entry(results[name]).result["met"] for name in "ab"] == [not alone] * 2


def test_what_memory_ran_out_for_beside_another_is_tried_again_alone(room: Room) -> None:
    results = room.run(room.task("large", "out_of_memory"), room.task("other", "swell", mib=64))
    assert results["large"].failure is not None
    assert results["large"].failure.kind == "memory"
    assert results["other"].entry is not None
    assert room.ran == ["large", "large", "other"]


def test_equal_tasks_are_done_once(room: Room) -> None:
    """Two models of one file: what stands in the store must be what both were told."""
    tasks = [Task(name, "draw", lambda _: {"same": 1}) for name in ("a", "b", "c")]
    results = room.run(*tasks)
    answers = [entry(results[name]).result["drawn"] for name in ("a", "b", "c")]
    stored = (entry(results["a"]).folder / "drawn.txt").read_text()
    assert answers == [stored] * 3


def test_a_task_that_cannot_be_given_its_payload_fails_alone(room: Room) -> None:
    def refuse(entries: Mapping[str, Entry]) -> dict[str, Any]:
        raise DataError("the data don't fit")

    bad = Task("bad", "echo", refuse)
    results = room.run(bad, room.task("blocked", "echo", "bad"), room.task("good"))
    failure = results["bad"].failure
    assert failure is not None
    assert (str(failure), failure.exit_code) == ("the data don't fit", 2)
    assert results["blocked"].blocked_by == "bad"
    assert room.ran == ["good"]
    scheduler = Scheduler(Store(room.root), room.workers)
    scheduler.take_stored([bad], "not stored")
    assert str(scheduler.results["bad"].failure) == "the data don't fit"


# --- Reuse ---


def test_stored_results_are_reused(room: Room) -> None:
    tasks = [room.task("a", "draw"), room.task("b", "echo", "a")]
    before = room.run(*tasks)
    assert room.ran == ["a", "b"]
    after = room.run(*tasks)
    assert room.ran == []
    for name in "ab":
        assert entry(after[name]) == entry(before[name])
        assert after[name].seconds == before[name].seconds, "the time of the run that did it"
        assert (before[name].reused, after[name].reused) == (False, True)


def test_nothing_is_reused_when_that_is_wished(room: Room) -> None:
    task = room.task("a", "draw")
    first = room.run(task)["a"]
    second = room.run(task, reuse=False)["a"]
    assert room.ran == ["a", "a"]
    assert not second.reused
    assert entry(second).result != entry(first).result
    assert entry(room.run(task)["a"]).result == entry(second).result, "the newer one is kept"


def test_the_store_may_be_moved(room: Room, tmp_path: Path) -> None:
    task = room.task("a", "write", text="x")
    room.run(task)
    shutil.move(room.root, tmp_path / "elsewhere")
    room.root = tmp_path / "elsewhere"
    result = room.run(task)["a"]
    assert result.reused
    assert (entry(result).folder / "sub" / "out.txt").is_relative_to(tmp_path / "elsewhere")
    assert (entry(result).folder / "sub" / "out.txt").exists()


def test_a_changed_payload_is_run_again(room: Room) -> None:
    payloads: list[dict[str, Any]] = [{"x": 1}, {"x": 2}, {"x": 1.0}, {"x": "1"}, {"x": [1]}, {"x": {"y": 1}}, {}]
    for payload in payloads:
        assert not room.run(room.task("a", **payload))["a"].reused
    assert len(room.ran) == len(payloads)
    assert all(room.run(room.task("a", **payload))["a"].reused for payload in payloads)


def test_another_kind_of_job_is_run_again(room: Room) -> None:
    room.run(room.task("a", "echo"))
    assert not room.run(room.task("a", "draw"))["a"].reused


def test_another_name_is_not(room: Room) -> None:
    """A result belongs to what was done, not to what it is called."""
    room.run(Task("a", "draw", lambda _: {}))
    assert room.run(Task("b", "draw", lambda _: {}))["b"].reused


def test_other_code_is_run_again(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    room.run(room.task("a"))
    with monkeypatch.context() as patch:
        patch.setattr(module, "code_fingerprint", lambda kind: "another version")
        assert not room.run(room.task("a"))["a"].reused
    assert room.run(room.task("a"))["a"].reused


def test_what_depends_on_a_changed_result_is_run_again(room: Room) -> None:
    def payload(entries: Mapping[str, Entry]) -> dict[str, Any]:
        return {"tally": str(room.tally), "name": "b", "sha256": entries["a"].result["payload"]["x"]}

    def run(x: str) -> list[str]:
        room.run(room.task("a", x=x), Task("b", "echo", payload, ("a",)))
        return room.ran

    assert run("1") == ["a", "b"]
    assert run("2") == ["a", "b"]
    assert run("1") == []


def test_a_damaged_result_is_made_again(room: Room) -> None:
    task = room.task("a", "write", text="whole")
    folder = entry(room.run(task)["a"]).folder
    (folder / "sub" / "out.txt").write_text("damaged")
    again = room.run(task)["a"]
    assert not again.reused
    assert (entry(again).folder / "sub" / "out.txt").read_text() == "whole"
    assert room.ran == ["a", "a"]


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ({"path": "/a", "sha256": "1"}, {"path": "/b", "sha256": "1"}, True),
        ({"path": "/a", "sha256": "1"}, {"path": "/a", "sha256": "2"}, False),
        ({"path": "/a", "sha256": ""}, {"path": "/b", "sha256": ""}, False),
        ({"path": "/a", "sha256": None}, {"path": "/b", "sha256": None}, False),
        ({"path": "/a"}, {"path": "/b"}, False),
        ({"path": "/a", "sha256": "1", "name": "x"}, {"path": "/b", "sha256": "1", "name": "y"}, False),
        (
            {"path": "/a", "sha256": "1", "in": {"path": "/c"}},
            {"path": "/a", "sha256": "1", "in": {"path": "/d"}},
            False,
        ),
        ([{"path": "/a", "sha256": "1"}, 2], [{"path": "/b", "sha256": "1"}, 2], True),
        ([{"path": "/a", "sha256": "1"}, 2], [{"path": "/b", "sha256": "1"}, 3], False),
    ],
)
def test_a_path_doesnt_matter_where_its_hash_is_known(room: Room, one: Any, two: Any, same: bool) -> None:
    room.run(room.task("a", file=one))
    assert room.run(room.task("a", file=two))["a"].reused is same


def test_a_model_that_was_moved_is_used_at_its_new_place(
    tmp_path: Path, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the real job. At the old place another model may stand by now."""
    helper = pytest.importorskip("onnx").helper
    values = [helper.make_tensor_value_info(name, 1, ["batch", 3]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "net", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    old, new = tmp_path / "old" / "net.onnx", tmp_path / "new" / "net.onnx"
    old.parent.mkdir()
    old.write_bytes(model.SerializeToString())

    def describe(path: Path) -> Result:
        scheduler = Scheduler(Store(tmp_path / "store"), workers)
        scheduler.run([source_task(Subject(name="net", origin=path), 30.0)])
        return scheduler.results["net"]

    assert model_of(entry(describe(old))).model.path == str(old)
    old.parent.rename(new.parent)
    assert model_of(entry(describe(new))).model.path == str(new)


# --- Failures ---


@pytest.mark.parametrize(("kind", "failure"), [("fail", "exception"), ("refuse_data", "refused")])
def test_failures_that_would_repeat_are_kept(room: Room, kind: str, failure: str) -> None:
    before = room.run(room.task("a", kind))["a"]
    after = room.run(room.task("a", kind))["a"]
    assert room.ran == ["a"]
    assert before.failure is not None
    assert before.failure.kind == failure
    assert after.failure == before.failure, "with its last words and its exit code"
    assert (before.reused, after.reused) == (False, True)
    assert before.entry is after.entry is None
    files = [path.name for path in room.root.glob("*/**/*") if path.is_file()]
    assert files == ["record.json"], "what the job left half-made is not kept"
    room.run(room.task("a", kind), reuse=False)
    assert room.ran == ["a"]


@pytest.mark.parametrize(
    ("kind", "payload", "failure"),
    [
        ("die", {"signal": int(signal.SIGSEGV)}, "crash"),
        ("die", {"signal": int(signal.SIGKILL)}, "memory"),
        ("out_of_memory", {}, "memory"),
        ("disk_full", {}, "storage"),
        ("lack_library", {}, "library"),
        ("hang", {}, "timeout"),
    ],
)
def test_failures_that_may_go_away_are_tried_again(
    room: Room, kind: str, payload: dict[str, Any], failure: str
) -> None:
    task = room.task("a", kind, timeout=0.3 if kind == "hang" else 30.0, **payload)
    for _ in range(2):
        result = room.run(task)["a"]
        assert result.failure is not None
        assert result.failure.kind == failure
        assert not result.reused
    assert room.ran == ["a", "a"]
    assert room.kept == []


@pytest.mark.parametrize(("kind", "failure"), [("die", "crash"), ("hang", "timeout"), ("out_of_memory", "memory")])
def test_where_it_is_wanted_all_but_full_disks_are_kept(room: Room, kind: str, failure: str) -> None:
    def task(timeout: float) -> Task:
        return replace(room.task("a", kind, timeout=timeout, signal=int(signal.SIGSEGV)), keep_stopped=True)

    limit = 0.3 if kind == "hang" else 30.0
    first, second = (room.run(task(limit))["a"] for _ in range(2))
    assert first.failure is not None
    assert first.failure.kind == failure
    assert second.failure == first.failure
    assert (first.reused, second.reused) == (False, True)
    assert room.ran == ["a"]
    assert not room.run(task(limit + 0.1))["a"].reused, "another limit may do"
    assert not room.run(room.task("a", kind, timeout=limit, signal=int(signal.SIGSEGV)))["a"].reused


def test_a_full_disk_is_never_kept(room: Room) -> None:
    task = replace(room.task("a", "disk_full"), keep_stopped=True)
    assert [room.run(task)["a"].reused for _ in range(2)] == [False, False]


def test_a_job_gets_no_more_time_than_the_command_has_left(room: Room) -> None:
    with ends_after(4.0, ""):
        result = room.run(replace(room.task("a", "hang"), keep_stopped=True))["a"]
    assert result.failure is not None
    assert result.failure.kind == "timeout"
    assert "--timeout" in result.failure.explanation
    assert room.kept == [], "a longer command may do it"


def test_a_disk_that_others_share_may_be_done_without(room: Room) -> None:
    with (
        Store(room.root, own=room.root / "own") as store,
        pytest.raises(StorageError, match="no space left"),
    ):
        Scheduler(store, room.workers).run([room.task("a", "disk_full")])


def test_recalling_runs_nothing_and_needs_no_files(room: Room) -> None:
    task = room.task("a", "write", text="whole")
    folder = entry(room.run(task)["a"]).folder
    with Store(room.root) as store:
        store.release([folder])
        recalling = Scheduler(store, room.workers, recall=True)
        recalling.run([task])
        assert entry(recalling.results["a"]).result == {"file": "sub/out.txt"}
        with pytest.raises(NotStoredError, match="b"):
            recalling.run([room.task("b", "write", text="other")])
    assert room.ran == ["a"]
    again = entry(room.run(task)["a"])
    assert (again.folder / "sub" / "out.txt").read_text() == "whole", "who needs the files gets them"
    assert room.ran == ["a"]


def test_what_depends_on_a_failure_is_blocked_and_nothing_else(room: Room) -> None:
    tasks = [
        room.task("d", "echo", "good", "bad"),
        room.task("c", "echo", "b"),
        room.task("b", "echo", "bad"),
        room.task("bad", "die", signal=int(signal.SIGABRT)),
        room.task("good"),
        room.task("e", "echo", "good"),
    ]
    for _ in range(2):
        results = room.run(*tasks)
        assert results["bad"].failure is not None
        assert {name: result.blocked_by for name, result in results.items()} == {
            "bad": None,
            "good": None,
            "e": None,
            "b": "bad",
            "c": "b",
            "d": "bad",
        }
        for name in "bcd":
            assert results[name].entry is results[name].failure is None
        for name in ("good", "e"):
            entry(results[name])
    assert room.ran == ["bad", "bad", "e", "good"]


def test_what_was_blocked_runs_once_the_failure_is_gone(room: Room, tmp_path: Path) -> None:
    """A crash isn't kept; here the machine has been repaired in the meantime."""

    def tasks(kind: str) -> list[Task]:
        first = room.task("a", kind, signal=int(signal.SIGKILL))
        return [first, room.task("b", "echo", "a")]

    assert room.run(*tasks("die"))["b"].blocked_by == "a"
    assert entry(room.run(*tasks("echo"))["b"])
    assert room.ran == ["a", "a", "b"]


@pytest.mark.parametrize("signal_", [signal.SIGSEGV, signal.SIGKILL])
@pytest.mark.parametrize("reuse", [True, False])
def test_a_search_goes_on_without_what_its_worker_died_of(room: Room, signal_: int, *, reuse: bool) -> None:
    task = room.task("a", "search", items=["1", "2", "3", "4"], fatal=["2", "3"], signal=int(signal_))
    result = room.run(replace(task, continues=True), room.task("b"), reuse=reuse)["a"]
    assert entry(result).result == {"tried": ["1", "4"]}
    tries = (
        4 if signal_ == signal.SIGKILL else 3
    )  # which may have been for memory: it's tried alone before it's blamed
    assert room.ran == ["a"] * tries + ["b"]
    assert room.kept == ["echo", "search"], "no journal is left"


def test_a_search_whose_worker_always_dies_is_given_up(room: Room) -> None:
    items = list("123456")
    result = room.run(replace(room.task("a", "search", items=items, fatal=items), continues=True))["a"]
    assert result.failure is not None
    assert result.failure.kind == "crash"
    assert room.ran == ["a"] * 4


def test_an_answer_that_cant_be_stored_fails_its_task_alone(room: Room) -> None:
    with Workers(2, jobs={**JOBS, **OWN}) as room.workers:
        results = room.run(room.task("bad", "answer", what="lock"), room.task("good"))
    assert results["bad"].failure is not None
    entry(results["good"])
    assert room.kept == ["answer", "echo"]


def test_a_number_that_json_lacks_is_kept_and_handed_on(room: Room) -> None:
    """A scale of NaN in a damaged model mustn't end the audit."""
    first = entry(room.run(room.task("a", "answer", what="nan"))["a"])
    given = first.result["value"]
    assert math.isnan(given)
    again = room.run(room.task("b", "echo", x=given), room.task("c", "echo", x=given))
    assert [math.isnan(entry(again[name]).result["payload"]["x"]) for name in "bc"] == [True] * 2


def test_an_interruption_leaves_no_scratch_folder(room: Room) -> None:
    def interrupt(name: str) -> None:
        raise KeyboardInterrupt

    def run() -> None:
        with Workers(2, jobs={**JOBS, **OWN}) as workers:
            scheduler = Scheduler(Store(room.root), workers)
            scheduler.run([room.task("a", "hang"), room.task("b")], told(advance=interrupt))

    with pytest.raises(KeyboardInterrupt):
        run()
    assert room.kept == ["echo"]
    assert room.run(room.task("b"))["b"].reused, "finished steps are kept"


# --- Preparing ---


def preparing(calls: list[str], **errors: ConrepairError) -> Callable[[Task], None]:
    """What notes the names of tasks, and raises an error for those of one."""

    def prepare(task: Task) -> None:
        calls.append(task.name)
        if task.name in errors:
            raise errors[task.name]

    return prepare


def test_a_task_is_prepared_once_before_it_runs_and_not_when_its_result_is_stored(room: Room) -> None:
    calls: list[str] = []
    room.run(room.task("a"), prepare=preparing(calls))
    assert (calls, room.ran) == (["a"], ["a"])
    assert room.run(room.task("a"), prepare=preparing(calls))["a"].reused
    assert (calls, room.ran) == (["a"], [])


def test_a_task_that_cannot_be_prepared_fails_and_blocks(room: Room) -> None:
    calls: list[str] = []
    error = ToolEnvironmentError("environment x could not be made: no network")
    results = room.run(room.task("a"), room.task("b", "echo", "a"), room.task("c"), prepare=preparing(calls, a=error))
    failure = results["a"].failure
    assert failure is not None
    assert (str(failure), failure.exit_code) == (str(error), int(error.exit_code))
    assert results["b"].blocked_by == "a"
    assert room.ran == ["c"]
    assert entry(room.run(room.task("a"), prepare=preparing(calls))["a"]), "the failure wasn't stored"
    assert calls == ["a", "c", "a"]

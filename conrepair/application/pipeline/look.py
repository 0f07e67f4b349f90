"""Look at a source and what was made of it in one job: its stages are calls in the worker.

What needs more than one process goes through jobs of its own, as in an audit: photos, which are decoded beside it;
compilers and converters, whose results are kept; and a look whose worker died, so that it's said of what.
"""

from __future__ import annotations

import inspect
import itertools
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from conrepair.application.engine.task import STEPS, Result, Task, blocked, entries_of, not_stored, refused
from conrepair.application.pipeline.evaluation import Execution, Looked
from conrepair.application.pipeline.photos import PhotoRoom
from conrepair.application.pipeline.settings import AS_IT_IS, Settings
from conrepair.application.pipeline.stages.state import RunState, problem_of
from conrepair.application.pipeline.subject import Subject
from conrepair.application.report.row_paths import Places, placed, relative_to, resolved_in
from conrepair.formats.models.detect import detect_framework
from conrepair.formats.models.formats import framework_needs
from conrepair.formats.models.identity import model_sha256
from conrepair.ground.runtime.errors import ConrepairError
from conrepair.ground.runtime.files.store import Entry, Store
from conrepair.ground.runtime.path_text import model_path
from conrepair.ground.runtime.processes.worker_process import describe_exception, function_of
from conrepair.ground.runtime.processes.workers import ENDED, Failure, words_since
from conrepair.ground.runtime.shown.heartbeat import telling, told_in
from conrepair.ground.runtime.shown.progress import UNSHOWN, ProgressDisplay, Stage

_PLACES: Places = {Looked: ("executed", "rows"), Execution: ("run", "second", "rounding", "build")}


class _Calls:
    """Does what a `Scheduler` does without a store and without workers: each task is a call.

    Args:
        folder: Of the job that this is; each task gets one in it.

    Attributes:
        results: By the task's name.
        seconds: Spent, by the kind of task, and by parts of it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._numbers = folder, itertools.count()
        self.results: dict[str, Result] = {}
        self.seconds: dict[str, float] = defaultdict(float)

    def run(self, tasks: Sequence[Task], stage: Stage = UNSHOWN) -> None:
        """Run tasks one at a time; their results go to `results`.

        Args:
            tasks: Each behind those that it depends on.
            stage: Told of each finished task.
        """
        for task in tasks:
            self.results[task.name] = blocked(task, self.results) or self._done(task)
            stage.advance(task.name)

    def take_stored(self, tasks: Sequence[Task], otherwise: str) -> None:
        """Settle tasks by results of earlier runs, of which there are none.

        Args:
            tasks: Whose results are missing.
            otherwise: What to say of them.
        """
        self.results |= {task.name: not_stored(otherwise) for task in tasks}

    def _done(self, task: Task) -> Result:
        started, words = time.perf_counter(), words_since(self._folder)
        folder = self._folder / str(next(self._numbers))
        try:
            arguments = task.payload(entries_of(task, self.results))
        except ConrepairError as error:
            return refused(error)
        folder.mkdir()
        try:
            value = inspect.unwrap(function_of(task.kind, STEPS))(folder=folder, **arguments)
        # The boundary of a job: whatever third-party code raises is its result.
        except (Exception, SystemExit) as error:  # noqa: BLE001
            sys.stdout.flush()
            return Result(failure=Failure(**describe_exception(error, folder), last_words=words()))
        seconds = time.perf_counter() - started
        for part, spent in {task.kind: seconds, **task.parts(value)}.items():
            self.seconds[part] += spent
        return Result(Entry(folder, value), seconds=seconds)


def look_in_one_job(state: RunState) -> Looked | None:
    """Look at the models of a run in one job; what it found out about them goes to the run.

    Args:
        state: The run.

    Returns:
        None where it's to be done stage by stage.

    Raises:
        ConrepairError: if the machine lacks something for it.
    """
    if state.settings.metrics or not all(map(_is_plain, state.subjects)):  # a user's functions are of this process
        return None
    task = _task(state)
    state.run("comparing both models", [task])
    result = state.scheduler.results[task.name]
    if result.entry is None:
        if result.failure is not None and result.failure.kind in {*ENDED, "refused", "changed"}:
            return None
        raise problem_of(result).as_error()
    looked = placed(result.entry.read(Looked), resolved_in(result.entry.folder), _PLACES)
    state.subjects = [_with_own_data(*pair) for pair in zip(looked.subjects, state.subjects, strict=True)]
    for item in state.subjects:
        if item.source is not None:
            state.scheduler.results[item.name] = Result(Entry(result.entry.folder, item.source))
    state.tell(*looked.notes)
    return looked


def _with_own_data(found: Subject, own: Subject) -> Subject:
    """A model that an earlier look found, with the data of this run: the same, and maybe elsewhere."""
    if own.dataset is None or found.dataset is None or not own.dataset.path:
        return found
    return replace(found, dataset=replace(found.dataset, path=own.dataset.path))


def _is_plain(subject: Subject) -> bool:
    """Whether nothing is made of a model, and its inputs are arrays."""
    made = subject.goals or any(choice.name not in AS_IT_IS or choice.in_release for choice in subject.backends)
    photos = subject.dataset is not None and bool(subject.dataset.photos)
    return isinstance(subject.origin, Path) and subject.problem is None and not made and not photos


def _task(state: RunState) -> Task:
    def payload(_: Any) -> Mapping[str, Any]:
        paths = [model_path(item.path) for item in state.subjects]  # which results name
        return {
            "subjects": [replace(item, origin=path) for item, path in zip(state.subjects, paths, strict=True)],
            "contents": [model_sha256(path) for path in paths],
            "settings": state.settings,
        }

    frameworks = [detect_framework(item.path, recorded=True) for item in state.subjects]
    names = " and ".join(subject.name for subject in (state.subjects[0], *state.subjects[1:][-1:]))
    return Task(
        f"{names}, look",
        "look",
        payload,
        needs=frozenset[str]().union(*map(framework_needs, frameworks)),
        timeout=state.settings.seconds,
        progress=told_in,
        parts=lambda value: value["seconds"],
    )


def look(folder: Path, subjects: list[Subject], contents: list[str], settings: Settings) -> Looked:
    """Run the stages of a look, one behind the other, in this process.

    Args:
        folder: Receives a folder for each step; paths in the result are relative to it.
        subjects: The models.
        contents: SHA-256 of their files, by which the result is kept.
        settings: Which stages, and how.
    """
    # The process that waits for this has no need of these.
    from conrepair.application.jobs.description import check_unchanged
    from conrepair.application.pipeline.stages.looked import look_at

    subjects = [replace(item, sha256=known) for item, known in zip(subjects, contents, strict=True)]
    calls, unshown = _Calls(folder), ProgressDisplay(quiet=True)
    with Store(folder / "photos") as store, telling(folder):
        looked = look_at(RunState(settings, subjects, unshown, calls, PhotoRoom(store, reuse=False)))
    data = (item.dataset for item in subjects if item.dataset is not None and item.dataset.path)
    check_unchanged(*subjects, *data)
    executed = looked.executed if settings.stages.repair else ()  # a repair goes on from these
    return placed(replace(looked, executed=executed, seconds=calls.seconds), relative_to(folder), _PLACES)

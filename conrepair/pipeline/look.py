"""Look at a source and what was made of it in one job: its stages are calls in the worker.

What needs more than one process goes through jobs of its own, as in an audit: photos, which are decoded beside it;
compilers and converters, whose results are kept; and a look whose worker died, so that it's said of what.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from conrepair.crowd.border import with_texts
from conrepair.engine.needs import framework_needs
from conrepair.engine.scheduler import Result, Task
from conrepair.frameworks.detect import detect_framework
from conrepair.frameworks.identity import model_sha256
from conrepair.frameworks.model import from_json
from conrepair.pipeline.evaluation import Looked
from conrepair.pipeline.photos import PhotoRoom
from conrepair.pipeline.settings import AS_IT_IS, Settings
from conrepair.pipeline.stages.state import RunState, problem_of
from conrepair.pipeline.subject import OnDisk, Subject
from conrepair.report.encode import encode
from conrepair.runtime.path_text import model_path
from conrepair.runtime.progress import ProgressDisplay, Stage
from conrepair.runtime.store import Store
from conrepair.runtime.workers import ENDED

__all__ = ["look", "look_in_one_job"]

_DOING = "doing"  # file of what the job is at


class _Told(ProgressDisplay):
    """Shows nothing, and writes what is being done where the process that waits for it can read it.

    Args:
        folder: Of the job.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(quiet=True)
        self._file = folder / _DOING

    @contextlib.contextmanager
    def stage(self, name: str, total: int, *, long: bool = False, done: int = 0) -> Iterator[Stage]:
        """Tell of a stage when it begins."""
        if total:
            self._file.write_text(name, encoding="utf-8")
        with super().stage(name, total, long=long, done=done) as stage:
            yield stage

    @staticmethod
    def said(folder: Path) -> str:
        """What the job of a folder is at; "" before it says so."""
        with contextlib.suppress(OSError):
            return (folder / _DOING).read_text(encoding="utf-8")
        return ""


def look_in_one_job(state: RunState) -> Looked | None:
    """Look at the models of a run in one job; what it found out about them goes to the run.

    Args:
        state: The run.

    Returns:
        None where it's to be done stage by stage.

    Raises:
        ConrepairError: if the machine lacks something for it.
    """
    if not all(map(_is_plain, state.subjects)):
        return None
    task = _task(state)
    state.run("look", [task])
    result = state.scheduler.results[task.name]
    if result.entry is None:
        if result.failure is not None and result.failure.kind in {*ENDED, "refused"}:
            return None
        raise problem_of(result).as_error()
    found = with_texts(result.entry.result, {result.entry.result["folder"]: str(result.entry.folder)})
    state.scheduler.results |= {name: from_json(Result, one) for name, one in found["described"].items()}
    looked = from_json(Looked, found["looked"])
    state.subjects = list(looked.subjects)
    state.notes += looked.notes
    for note in looked.notes:
        state.display.note(note)
    return looked


def _is_plain(subject: Subject) -> bool:
    """Whether nothing is made of a model, and its inputs are arrays."""
    made = subject.goals or any(choice.name not in AS_IT_IS or choice.in_release for choice in subject.backends)
    photos = subject.dataset is not None and bool(subject.dataset.photos)
    return isinstance(subject.origin, OnDisk) and subject.problem is None and not made and not photos


def _task(state: RunState) -> Task:
    origins = [item.origin for item in state.subjects if isinstance(item.origin, OnDisk)]

    def payload(_: Any) -> dict[str, Any]:
        files = [OnDisk(model_path(item.path), item.trust) for item in origins]  # which results name
        asked = [replace(item, origin=file) for item, file in zip(state.subjects, files, strict=True)]
        return {
            "subjects": encode(asked, text=str),
            "models": [{"path": str(file.path), "sha256": model_sha256(file.path)} for file in files],
            "settings": encode(state.settings),
        }

    names = " and ".join(subject.name for subject in (state.subjects[0], *state.subjects[1:][-1:]))
    return Task(
        f"{names}, look",
        "look",
        payload,
        needs=frozenset[str]().union(
            *(framework_needs(detect_framework(item.path, recorded=True)) for item in origins)
        ),
        timeout=state.settings.seconds,
        progress=_Told.said,
        parts=lambda value: value["seconds"],
    )


def look(payload: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Run the stages of a look, one behind the other, in this process.

    Args:
        payload: "subjects" (as `Subject`), "models" (their files, by their content), and "settings".
        folder: Receives a folder for each step.

    Returns:
        "looked" (a `Looked`), "described" (the result of each model's task), "seconds" (by the kind of step), and
        "folder": paths are below it until it's put elsewhere.
    """
    from conrepair.engine.here import Here  # the process that waits for this has no need of the stages
    from conrepair.pipeline.stages.looked import look_at

    here, photos = Here(folder), PhotoRoom(Store(folder / "photos"), reuse=False)
    subjects = [from_json(Subject, value) for value in payload["subjects"]]
    state = RunState(from_json(Settings, payload["settings"]), subjects, _Told(folder), here, photos)
    found = {
        "looked": look_at(state),
        "described": {item.name: here.results[item.name] for item in subjects if item.name in here.results},
        "seconds": here.seconds,
        "folder": folder,
    }
    (folder / _DOING).unlink(missing_ok=True)
    told: dict[str, Any] = encode(found, text=str)
    return told

"""The stages, in their order, and what they come to: the same for two files and for a whole audit."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import conrepair
from conrepair.application.engine.fingerprint import library_versions
from conrepair.application.engine.session import Session
from conrepair.application.pipeline.datasets import synthetic_in_words
from conrepair.application.pipeline.evaluation import Looked
from conrepair.application.pipeline.look import look_in_one_job
from conrepair.application.pipeline.photos import PhotoRoom
from conrepair.application.pipeline.settings import Settings
from conrepair.application.pipeline.stages.state import RunState
from conrepair.application.pipeline.subject import Subject
from conrepair.application.report.result import AuditResult, RunKind
from conrepair.ground.runtime.invocation import invoked


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a verb asks for of a model, or of a source and its target.

    Attributes:
        paths: The files and folders that are given: the model, or the source, what's on the way, and the target.
        data: File or folder of what they're fed; None where that's drawn.
        subjects: The models that a run looks at, the source first.
        settings: Which stages, and how.
        asked: What was asked for, as JSON, for the record.
        notes: What a person should know already.
    """

    paths: tuple[Path, ...]
    data: Path | None
    subjects: tuple[Subject, ...]
    settings: Settings
    asked: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def target(self) -> Path:
        """The model in question, or a folder that `build` wrote."""
        return self.paths[-1]

    @property
    def inputs(self) -> tuple[Path, ...]:
        """What is read, and never written to."""
        return *self.paths, *(() if self.data is None else (self.data,))


@contextlib.contextmanager
def run_state(request: Request, session: Session) -> Iterator[RunState]:
    """What the stages of a run of a few models know, which they fill in: the models that are given stay as they are.

    Args:
        request: Models and settings.
        session: Where.
    """
    with (
        contextlib.closing(PhotoRoom(session.store, reuse=True)) as photos,
        session.scheduler() as (scheduler, display),
    ):
        own = [dataclasses.replace(item) for item in request.subjects]
        yield RunState(request.settings, own, display, scheduler, photos, list(request.notes))


def run_stages(state: RunState, looked: Looked | None = None) -> Looked:
    """Run the stages that the settings switch on.

    Args:
        state: The run; its subjects and notes are filled in.
        looked: What a look in one job came to; None: it's looked at here.

    Returns:
        What they come to, with what's at fault repaired where that's wanted.
    """
    if looked is None:
        from conrepair.application.pipeline.stages.looked import (
            look_at,  # two files are looked at in a worker, which has them
        )

        looked = look_at(state)
    rows = looked.rows
    if state.settings.stages.repair and state.settings.repair_targets:
        from conrepair.application.pipeline.stages.repair import repair

        rows = repair(state, looked.executed, rows)
    return dataclasses.replace(looked, rows=rows, notes=tuple(state.notes))


def run_models(
    request: Request, session: Session, kind: RunKind, *, name: str = "run", folder: Path | None = None
) -> AuditResult:
    """Run the stages for a few models.

    Args:
        request: Models and settings.
        session: Where.
        kind: What was asked for, as `AuditResult.kind`.
        name: Of the run.
        folder: Where its files will be.
    """

    def work() -> Looked:
        with run_state(request, session) as state:
            return run_stages(state, look_in_one_job(state))

    started, asked = time.perf_counter(), request.asked
    return result_of(
        [session.kept(work)],
        name=name,
        folder=folder or session.room / name,
        config={**asked, "tolerance": dataclasses.asdict(request.settings.tolerance)} if asked else {},
        seconds=time.perf_counter() - started,
        top_k=request.settings.top_k,
        kind=kind,
    )


def result_of(
    parts: Sequence[Looked],
    *,
    name: str,
    folder: Path,
    config: Mapping[str, Any],
    seconds: float,
    top_k: int,
    architectures: Collection[str] = (),
    kind: RunKind = "audit",
) -> AuditResult:
    """What parts of a run come to.

    Args:
        parts: In the order of their rows.
        name: Of the run.
        folder: Where its files are, or will be.
        config: What was asked for, as JSON.
        seconds: Wall time.
        top_k: Classes of an answer that were compared.
        architectures: Names of models that are architectures of a list.
        kind: What was asked for.
    """
    subjects = [subject for part in parts for subject in part.subjects]
    data = {subject.name: _data_in_words(subject, subjects) for subject in subjects if subject.dataset}
    return AuditResult(
        name=name,
        folder=folder,
        rows=tuple(row for part in parts for row in part.rows),
        samples={data[subject.name]: subject.dataset.names for subject in subjects if subject.dataset},
        datasets=data,
        seeds={item.name: item.dataset.limits.seed for item in subjects if item.dataset and item.drawn},
        recipes={item.name: dataclasses.asdict(item.recipe) if item.recipe else None for item in subjects},
        pairs=tuple(pair for part in parts for pair in part.pairs),
        versions={"conrepair": conrepair.__version__, **library_versions()},
        config=config,
        seconds=seconds,
        top_k=top_k,
        notes=tuple(note for part in parts for note in part.notes),
        architectures=tuple(subject.name for subject in subjects if subject.name in architectures),
        kind=kind,
        command=invoked(),
    )


def _data_in_words(subject: Subject, subjects: Sequence[Subject]) -> str:
    """What a model runs on: what is drawn depends on the inputs of the model that it's compared with.

    Args:
        subject: The model.
        subjects: Of the run, with it.
    """
    reference = next((other for other in subjects if other.name == subject.reference), subject)
    if subject.dataset is None or not subject.drawn or reference.source is None:
        return "" if subject.dataset is None else subject.dataset.about
    inputs = reference.source.description.inputs
    return synthetic_in_words(subject.dataset.count, subject.dataset.limits, inputs)

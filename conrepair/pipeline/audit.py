"""A whole audit: build, convert, execute, evaluate."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from conrepair.config.model import AuditConfig, ModelConfig
from conrepair.evaluate.compare import Comparison
from conrepair.pipeline.architectures import architecture_models, audit_one_by_one, model_folders
from conrepair.pipeline.compiling import check_backends
from conrepair.pipeline.datasets import synthetic_in_words
from conrepair.pipeline.evaluation import evaluate
from conrepair.pipeline.fingerprint import library_versions
from conrepair.pipeline.photos import PhotoRoom
from conrepair.pipeline.plan import check_converters
from conrepair.pipeline.scheduler import Scheduler
from conrepair.pipeline.stages.compilation import models_of, prepare
from conrepair.pipeline.stages.conversion import convert, plan
from conrepair.pipeline.stages.drawing import draw
from conrepair.pipeline.stages.execution import execute
from conrepair.pipeline.stages.localize import localize
from conrepair.pipeline.stages.mend import mend
from conrepair.pipeline.stages.preparation import build, resolve
from conrepair.pipeline.stages.repair import repair
from conrepair.pipeline.stages.rounding import measure_rounding
from conrepair.pipeline.stages.state import State, Subject
from conrepair.report.result import AuditResult, Row
from conrepair.report.write import check_folder
from conrepair.runtime.progress import ProgressDisplay
from conrepair.runtime.store import Store
from conrepair.runtime.workers import Workers

__all__ = ["run_audit"]


def run_audit(
    config: AuditConfig,
    base: Path,
    display: ProgressDisplay,
    use: contextlib.ExitStack | None = None,
    tell: Callable[[AuditResult], None] = lambda _: None,
) -> AuditResult:
    """Run the stages that the configuration switches on.

    Args:
        config: What to do.
        base: Folder that relative paths of the configuration start from.
        display: Shows progress.
        use: Keeps the store in use until it's left: until the files are written. Default: until this returns.
        tell: Called with the result so far when an architecture of a list is done.

    Returns:
        The result; files of the run's folder are not written yet.

    Raises:
        ConfigError: if a route or option is wrong.
        DataError: if the dataset of every model is unusable.
        StorageError: if the output folder can't be written.
        UsageError: if another run makes everything in the store anew, or this one would under another's hands.
    """
    started = time.perf_counter()
    check_converters(config)
    check_backends(config)
    architectures = architecture_models(config)
    output = base / config.output
    check_folder(output / config.name, _input_paths(config, base))

    def so_far(parts: Sequence[_Part]) -> None:
        tell(_result(config, output, parts, architectures, time.perf_counter() - started))

    with contextlib.ExitStack() as own:
        store = (use or own).enter_context(Store(output / "store", fresh=not config.reuse))
        parts = _run_parts(config, base, display, store, architectures, so_far)
    return _result(config, output, parts, architectures, time.perf_counter() - started)


@dataclass(frozen=True)
class _Part:
    """The result of some of an audit's models."""

    subjects: list[Subject]
    rows: tuple[Row, ...]
    pairs: tuple[Comparison, ...]
    notes: list[str]


def _result(
    config: AuditConfig,
    output: Path,
    parts: Sequence[_Part],
    architectures: Sequence[ModelConfig],
    seconds: float,
) -> AuditResult:
    subjects = [subject for part in parts for subject in part.subjects]
    listed = {model.name for model in architectures}
    data = {subject.config.name: _data(subject, subjects) for subject in subjects if subject.dataset}
    return AuditResult(
        name=config.name,
        folder=output / config.name,
        rows=tuple(row for part in parts for row in part.rows),
        samples={data[subject.config.name]: subject.dataset.names for subject in subjects if subject.dataset},
        datasets=data,
        recipes={
            subject.config.name: dataclasses.asdict(subject.recipe) if subject.recipe else None
            for subject in subjects
        },
        pairs=tuple(pair for part in parts for pair in part.pairs),
        versions=library_versions(),
        config=config.model_dump(mode="json", by_alias=True),
        seconds=seconds,
        top_k=config.top_k,
        notes=tuple(note for part in parts for note in part.notes),
        architectures=tuple(subject.config.name for subject in subjects if subject.config.name in listed),
    )


def _data(subject: Subject, subjects: Sequence[Subject]) -> str:
    """What a model runs on, in words: what is drawn depends on the inputs of the model that it's compared with."""
    reference = next((other for other in subjects if other.config.name == subject.config.compare_with), subject)
    if subject.dataset is None or subject.dataset.kind != "synthetic" or reference.source is None:
        return "" if subject.dataset is None else subject.dataset.about
    inputs = reference.source.description.inputs
    return synthetic_in_words(subject.dataset.count, subject.dataset.limits, inputs)


def _run_parts(
    config: AuditConfig,
    base: Path,
    display: ProgressDisplay,
    store: Store,
    architectures: list[ModelConfig],
    so_far: Callable[[Sequence[_Part]], None],
) -> list[_Part]:
    """Run all models together, then each architecture by itself."""
    photos = PhotoRoom(store, reuse=config.reuse)
    folders = str(Path.cwd()), str(base)
    parts: list[_Part] = []
    with Workers(config.limits.workers, folders, memory_gb=config.limits.memory_gb) as workers:
        scheduler = Scheduler(store, workers, reuse=config.reuse)
        try:
            if config.models:
                parts.append(_run_part(State(config, base, display, scheduler, photos)))

            def one(model: ModelConfig, scheduler: Scheduler) -> _Part:
                alone = config.model_copy(update={"models": (model,)})
                return _run_part(State(alone, base, display, scheduler, photos, keep_failures=True))

            if architectures:
                kept = model_folders(scheduler)
                for part in audit_one_by_one(architectures, one, config, store, workers, display, kept):
                    parts.append(part)
                    so_far(parts)
        finally:
            photos.close()
    return parts


def _run_part(state: State) -> _Part:
    resolve(state)
    build(state)
    draw(state)
    plan(state)
    convert(state)
    prepare(state, models_of(state))
    executed = execute(state)
    rows, pairs = evaluate(state.config, executed, state.datasets)
    if measure_rounding(state, executed, rows):
        rows, pairs = evaluate(state.config, executed, state.datasets)
    stages, mended = state.config.stages, state.config.repair
    if stages.repair and mended.conversions:
        executed, rows = mend(state, executed, rows)
    if stages.localize or (stages.repair and mended.targets):
        rows = localize(state, executed, rows)
    if stages.repair and mended.targets:
        rows = repair(state, executed, rows)
    return _Part(state.subjects, rows, pairs, state.notes)


def _input_paths(config: AuditConfig, base: Path) -> list[Path]:
    """Every file and folder of the user's that the audit reads."""
    names = [name for model in config.models for name in (model.path, model.weights)]
    for dataset in (config.dataset, *(model.dataset for model in config.models)):
        names += [dataset.folder, dataset.tensors] if dataset is not None else []
    return [base / name for name in names if name is not None]

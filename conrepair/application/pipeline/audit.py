"""A whole audit: build, convert, execute, evaluate."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from conrepair.application.config.model import AuditConfig, ModelConfig
from conrepair.application.engine.place import executor, preparing
from conrepair.application.engine.scheduler import Scheduler
from conrepair.application.pipeline.architectures import architecture_models, audit_one_by_one, model_folders
from conrepair.application.pipeline.evaluation import Looked
from conrepair.application.pipeline.from_config import check_backends, check_converters, settings_of, subjects_of
from conrepair.application.pipeline.photos import PhotoRoom
from conrepair.application.pipeline.run import result_of, run_stages
from conrepair.application.pipeline.stages.state import RunState
from conrepair.application.report.audit_folder import write_audit, write_so_far
from conrepair.application.report.folder import check_folder
from conrepair.application.report.result import AuditResult
from conrepair.application.report.unfinished import unfinished_page
from conrepair.ground.runtime.files.store import Store
from conrepair.ground.runtime.processes.confinement import CONFINED, within_reach
from conrepair.ground.runtime.shown.progress import ProgressDisplay


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
    check_output(config, base)

    def result(parts: Sequence[Looked]) -> AuditResult:
        return result_of(
            parts,
            name=config.name,
            folder=output / config.name,
            config=config.model_dump(mode="json", by_alias=True, exclude={"engine"}),
            seconds=time.perf_counter() - started,
            top_k=config.top_k,
            architectures={model.name for model in architectures},
        )

    with contextlib.ExitStack() as own:
        store = (use or own).enter_context(Store(output / "store", fresh=not config.reuse))
        parts = _run_parts(config, base, display, store, architectures, lambda done: tell(result(done)))
    return result(parts)


def check_output(config: AuditConfig, base: Path) -> None:
    """Make sure that an audit's folder replaces nothing of the user's.

    Args:
        config: The audit.
        base: Folder that its relative paths start from.

    Raises:
        UsageError: if the folder is something else than an earlier audit's, or holds an input.
    """
    check_folder(base / config.output / config.name, "audit", _input_paths(config, base))


def _run_parts(
    config: AuditConfig,
    base: Path,
    display: ProgressDisplay,
    store: Store,
    architectures: list[ModelConfig],
    so_far: Callable[[Sequence[Looked]], None],
) -> list[Looked]:
    """Run all models together, then each architecture by itself."""
    photos, settings = PhotoRoom(store, reuse=config.reuse), settings_of(config, base)
    folders = str(Path.cwd()), str(base)
    if not (hold := within_reach(CONFINED)).full:
        display.note(f"workers are {hold}: see docs/security.md")
    parts: list[Looked] = []
    with executor(
        config.limits.workers, folders, memory_gb=config.limits.memory_gb, folders=(store.work,)
    ) as workers:
        scheduler = Scheduler(store, workers, reuse=config.reuse, prepare=preparing(display))
        try:

            def part_of(models: Sequence[ModelConfig], scheduler: Scheduler, *, keep_failures: bool) -> Looked:
                subjects, notes = subjects_of(config, models, base, display)
                return run_stages(RunState(settings, subjects, display, scheduler, photos, notes, keep_failures))

            if config.models:
                parts.append(part_of(config.models, scheduler, keep_failures=False))
            if architectures:
                kept = model_folders(scheduler)
                one = partial(part_of, keep_failures=True)
                for part in audit_one_by_one(architectures, one, config, store, workers, display, kept):
                    parts.append(part)
                    so_far(parts)
        finally:
            photos.close()
    return parts


def _input_paths(config: AuditConfig, base: Path) -> list[Path]:
    """Every file and folder of the user's that the audit reads."""
    names = [name for model in config.models for name in (model.path, model.weights)]
    for dataset in (config.dataset, *(model.dataset for model in config.models)):
        names += [dataset.folder, dataset.tensors] if dataset is not None else []
    return [base / name for name in names if name is not None]


def run_and_write(
    config: AuditConfig, base: Path, *, quiet: bool, judged: Callable[[AuditResult], AuditResult] | None = None
) -> AuditResult:
    """Run an audit, and write its folder.

    Args:
        config: What to do.
        base: Folder that its relative paths start from.
        quiet: No progress.
        judged: Makes of the result what is written.
    """
    with contextlib.ExitStack() as use, unfinished_page(base / config.output / config.name) as page:
        with ProgressDisplay(quiet=quiet, page=page) as display:
            result = run_audit(config, base, display, use, write_so_far)
        result = result if judged is None else judged(result)
        write_audit(result, base / config.output / "store")
    return result

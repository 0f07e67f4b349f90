"""`conrepair repair --apply`: the edits of a patch made again, in a model or in a build."""

from __future__ import annotations

import argparse
import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conrepair.application.cli.next_step import command, tell_next
from conrepair.application.engine.problems import entry_of, problem_of_failure
from conrepair.application.engine.session import Session
from conrepair.application.engine.task import Task
from conrepair.application.pipeline.pair import is_build, repair_folder
from conrepair.application.report.folder import check_folder, run_output
from conrepair.diagnosis.repairs.build_change import changed_options, read_build_patch, write_changed
from conrepair.diagnosis.repairs.outcomes import CONVERTED, RECIPE
from conrepair.diagnosis.repairs.patch import read_patch
from conrepair.diagnosis.repairs.search import STEM
from conrepair.formats.models.detect import detect_framework
from conrepair.formats.models.formats import framework_needs
from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import Model
from conrepair.formats.networks.tvm import imported_model
from conrepair.ground.runtime.errors import ExitCode, UsageError
from conrepair.ground.runtime.files.store import RECORD, Entry
from conrepair.ground.runtime.path_text import model_path
from conrepair.ground.runtime.shown.progress import say


def apply(options: argparse.Namespace) -> int:
    """Make the edits of a patch again.

    Returns:
        0. What fails is an error.

    Raises:
        ConrepairError: if the patch is for something else, or its edits can't be made.
    """
    source, patch = Path(options.source), Path(options.apply)
    target = source if options.target is None else Path(options.target)
    folder = repair_folder(options.output, target)
    check_folder(folder, "repair", (model_path(source), model_path(target), patch))
    if is_build(target):
        model = None if options.target is None else _model(model_path(source), trust=options.trust)
        return _apply_to_build(patch, model_path(target), model, folder, options.timeout, quiet=options.quiet)
    if options.target is not None:
        raise UsageError("--apply changes one model; name only that.")
    return _apply_to_model(
        patch, _model(model_path(source), trust=options.trust), folder, options.timeout, quiet=options.quiet
    )


def _model(path: Path, *, trust: bool) -> Model:
    return Model(detect_framework(path), str(path), model_sha256(path), trust=trust)


def _apply_to_model(path: Path, model: Model, folder: Path, seconds: float, *, quiet: bool) -> int:
    """Change a copy in a worker: what's in a file or a patch of somebody's isn't loaded here."""
    patch, target_hash = read_patch(path)
    converted = path.with_name(CONVERTED)
    if model.sha256 != target_hash and converted.is_file():
        raise UsageError(f"the patch applies to {converted}, not to {model.path}. Name that file.")
    payload = {"patch": path.absolute(), "model": model}
    needs = framework_needs(model.framework)
    output = run_output(folder, "repair")
    with _done("patch", payload, needs, seconds, quiet=quiet) as done, output.write() as temporary:
        shutil.copytree(done.folder, temporary, ignore=shutil.ignore_patterns(RECORD))
    name = done.result
    for written in [*([name] if name else []), *([RECIPE] if patch.recipe is not None else [])]:
        say(f"written: {folder / written}")
    if name:
        tell_next(f"{command('inspect', folder / name)} lists what it consists of")
    return int(ExitCode.EQUIVALENT)


def _apply_to_build(
    path: Path, build: Path, model: Model | None, folder: Path, seconds: float, *, quiet: bool
) -> int:
    """Compile it in a worker, as it always is."""
    change = read_build_patch(path, build)
    imported = imported_model(build, model)
    values, batch = changed_options(build, change)
    payload = {"model": imported, "backend": "tvm", "options": values, "batch_size": batch}
    needs = framework_needs(imported.framework) | {"tvm"}
    output = run_output(folder, "repair")
    with _done("compile", payload, needs, seconds, quiet=quiet) as done, output.write() as temporary:
        temporary.mkdir()
        write_changed(build, change, done.folder, temporary / STEM)
    say(f"written: {folder / STEM}")
    return int(ExitCode.EQUIVALENT)


@contextlib.contextmanager
def _done(
    kind: str, payload: dict[str, Any], needs: frozenset[str], seconds: float, *, quiet: bool
) -> Iterator[Entry]:
    """Do a job in a worker; what it made, which is gone after the block.

    Raises:
        ConrepairError: if it failed.
    """
    with Session(quiet=quiet) as session:
        done = session.result(Task(kind, kind, lambda _: payload, needs=needs, timeout=seconds))
        if done.failure is not None and done.failure.kind == "refused":
            raise problem_of_failure(done.failure).as_error()
        yield entry_of(done, kind)

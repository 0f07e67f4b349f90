"""What the verb `repair` does: a target mended, or the edits of a patch made again in a model or a build."""

from __future__ import annotations

import argparse
import contextlib
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from conrepair.cli.next_step import after_repair, command, tell_next
from conrepair.cli.several import each_target, tell
from conrepair.engine.problems import problem_of_failure
from conrepair.engine.session import STORE, Session
from conrepair.frameworks.detect import detect_framework
from conrepair.frameworks.formats import framework_needs
from conrepair.frameworks.identity import model_sha256
from conrepair.frameworks.model import Model, to_json
from conrepair.networks.tvm import imported_model
from conrepair.pipeline.options import asked_of, repair_folder
from conrepair.pipeline.settings import layer_settings
from conrepair.pipeline.verbs import is_build, repair_pair
from conrepair.repairs.build_change import changed_options, read_build_patch, write_changed
from conrepair.repairs.patch import CONVERTED, RECIPE, read_patch
from conrepair.repairs.search import STEM
from conrepair.report.folder import check_folder, run_output
from conrepair.report.localization.advice import verdict_advice
from conrepair.report.results import Repaired
from conrepair.runtime.errors import ExitCode, UsageError
from conrepair.runtime.files import make_folder, storage_error
from conrepair.runtime.path_text import model_path
from conrepair.runtime.progress import say
from conrepair.runtime.scratch import SCRATCH, kept_folder
from conrepair.runtime.store import journals
from conrepair.runtime.workers import Success
from conrepair.verbs.options import Repair

_UNFINISHED = ".conrepair-unfinished"


def repair(options: argparse.Namespace) -> int:
    """Repair each target, or make the edits of a patch again.

    Returns:
        The exit code: 0 where the result is the source's equal, 1 where something is left, 130 where the search was
        ended by Ctrl-C.

    Raises:
        ConrepairError: if a file can't be loaded or edited.
    """
    if options.apply is not None and len(options.targets) > 1:
        raise UsageError("--apply edits one model: name it, and the source if it's to be compared.")
    if options.output is None:
        _check_apart(options.targets)
    return each_target(options, _repair if options.apply is None else apply)


def _check_apart(targets: Sequence[str]) -> None:
    """Refuse to write what becomes of two targets to one folder.

    Raises:
        UsageError: if so.
    """
    folders = [repair_folder(None, Path(target)) for target in targets]
    for folder in folders:
        if folders.count(folder) > 1:
            raise UsageError(f"two targets would be written to {folder}. Name a folder for all of them (-o).")


def _repair(options: argparse.Namespace) -> int:
    if options.target is None:
        raise UsageError("name the source and the target; only with --apply one model is enough.")
    done, written = repaired(options)
    tell(done.run, as_json=options.format == "json", folder=written)
    if options.format == "text":
        tell_next(_next(done, written, options))
    return done.exit_code


def _next(done: Repaired, written: Path | None, options: argparse.Namespace) -> str:
    """What helps further; the search that had no time for all, and one that was interrupted, say so themselves."""
    result = done.result
    if result is None:
        return verdict_advice(done.before, done.about)
    if not result.before.faults or result.interrupted or not (result.in_time or result.mended):
        return ""
    target = Path(options.target)
    model = target if result.model is None or written is None else Path(result.model.path)
    recipe = None if result.recipe is None or written is None else written / RECIPE
    return after_repair(options, model, right=result.mended, build=is_build(target), recipe=recipe)


def repaired(options: argparse.Namespace) -> tuple[Repaired, Path | None]:
    """Repair a target, and write what came of it.

    Args:
        options: Of the command line.

    Returns:
        What came of it; and the folder, None where nothing was written: nothing was at fault, or the search was
        interrupted before it had anything.

    Raises:
        ConrepairError: if a file can't be loaded or edited.
    """
    verb = Repair.of(vars(options))
    asked = asked_of(verb)
    asked.check()
    folder = repair_folder(options.output, asked.target)
    check_folder(folder, "repair", (asked.source, asked.target))
    with contextlib.ExitStack() as stack:
        make_folder(folder.parent)
        stack.enter_context(storage_error(folder.parent))
        room = stack.enter_context(
            kept_folder(folder.parent / f".{folder.name}{_UNFINISHED}", SCRATCH, _is_unfinished, own=[STORE])
        )
        session = stack.enter_context(
            Session(room, quiet=options.quiet, keeps=not options.trust, fresh=options.fresh)
        )
        done = repair_pair(asked, layer_settings(verb), session)
        return done.save(folder), folder if done.tells else None


def _is_unfinished(room: Path) -> bool:
    return bool(journals(room / STORE))


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
        raise UsageError(f"the patch is for {converted}, which a target was converted to; name that.")
    payload = {"patch": str(path.absolute()), "model": to_json(model)}
    needs = framework_needs(model.framework)
    output = run_output(folder, "repair")
    with _done("patch", payload, needs, seconds, quiet=quiet) as (value, made), output.write() as temporary:
        shutil.copytree(made, temporary)
    name = value["made"]
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
    payload = {"model": to_json(imported), "backend": "tvm", "options": values, "batch_size": batch}
    needs = framework_needs(imported.framework) | {"tvm"}
    output = run_output(folder, "repair")
    with _done("compile", payload, needs, seconds, quiet=quiet) as (_, made), output.write() as temporary:
        temporary.mkdir()
        write_changed(build, change, made, temporary / STEM)
    say(f"written: {folder / STEM}")
    return int(ExitCode.EQUIVALENT)


@contextlib.contextmanager
def _done(
    kind: str, payload: dict[str, Any], needs: frozenset[str], seconds: float, *, quiet: bool
) -> Iterator[tuple[dict[str, Any], Path]]:
    """Do a job in a worker; what it returned, and the folder of what it made, which is gone after the block.

    Raises:
        ConrepairError: if it failed.
    """
    with Session(quiet=quiet) as session, session.store.scratch() as made:
        outcome = session.call(kind, payload, needs=needs, timeout=seconds, made=made)
        if not isinstance(outcome, Success):
            problem = problem_of_failure(outcome)
            raise problem.as_error("" if problem.kind == "refused" else kind)
        yield outcome.value, made

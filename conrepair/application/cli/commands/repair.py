"""`conrepair repair`: fix a converted file in its own format; needs no configuration and no data."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Sequence
from pathlib import Path

from conrepair.application.cli.next_step import tell_next
from conrepair.application.cli.several import each_target, tell
from conrepair.application.engine.session import STORE, Session
from conrepair.application.pipeline.pair import pair_of, repair_folder, repair_pair
from conrepair.application.report.folder import check_folder
from conrepair.application.report.next_steps import next_steps, sentence
from conrepair.application.report.results import Repaired
from conrepair.application.verbs.options import Repair
from conrepair.ground.runtime.errors import UsageError
from conrepair.ground.runtime.files.scratch import SCRATCH, kept_folder
from conrepair.ground.runtime.files.store import journals
from conrepair.ground.runtime.files.whole import make_folder, storage_error

_UNFINISHED = ".conrepair-unfinished"


def repair(options: argparse.Namespace) -> int:
    """Repair each target, or make the edits of a patch again.

    Returns:
        The exit code: 0 where the result computes what the original does, 1 where not, 130 where the search was
        ended by Ctrl-C.

    Raises:
        ConrepairError: if a file can't be loaded or edited.
    """
    if options.apply is not None and len(options.targets) > 1:
        raise UsageError("--apply edits one model: name it, and for a build the original, too.")
    if options.output is None:
        _check_apart(options.targets)
    return each_target(options, _repair if options.apply is None else _apply)


def _check_apart(targets: Sequence[str]) -> None:
    """Refuse to write what becomes of two targets to one folder.

    Raises:
        UsageError: if so.
    """
    folders = [repair_folder(None, Path(target)) for target in targets]
    for folder in folders:
        if folders.count(folder) > 1:
            raise UsageError(f"two repaired models would be written to {folder}. Name a folder for all of them (-o).")


def _apply(options: argparse.Namespace) -> int:
    from conrepair.application.cli.commands.apply import apply

    return apply(options)


def _repair(options: argparse.Namespace) -> int:
    if options.target is None:
        raise UsageError("repair takes two models, ORIGINAL and CONVERTED; one is enough only with --apply.")
    done, written = repaired(options)
    tell(done.run, options.format, written)
    if options.format != "json":
        tell_next(sentence(next_steps(done.run)))
    return done.exit_code


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
    pair = pair_of(Repair.of(vars(options)))
    folder = repair_folder(options.output, pair.target)
    check_folder(folder, "repair", pair.inputs)
    with contextlib.ExitStack() as stack:
        make_folder(folder.parent)
        stack.enter_context(storage_error(folder.parent))
        room = stack.enter_context(
            kept_folder(folder.parent / f".{folder.name}{_UNFINISHED}", SCRATCH, _is_unfinished, own=[STORE])
        )
        session = stack.enter_context(
            Session(room, quiet=options.quiet, keeps=not options.trust, fresh=options.fresh)
        )
        done = repair_pair(pair, session)
        return done.save(folder), folder if done.tells else None


def _is_unfinished(room: Path) -> bool:
    return bool(journals(room / STORE))

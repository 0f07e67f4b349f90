"""`conrepair repair`: mend a converted file in its own format; needs no configuration and no data."""

from __future__ import annotations

import argparse
import contextlib
import json
from pathlib import Path

from conrepair.localization.result import Localization
from conrepair.pipeline.options import asked_of, repair_folder
from conrepair.pipeline.session import Session
from conrepair.pipeline.settings import RepairSettings, layer_settings
from conrepair.pipeline.verbs import repair_pair
from conrepair.report.repair.summary import print_repair
from conrepair.report.repair.write import check_repair_folder
from conrepair.report.results import Repaired
from conrepair.runtime.errors import ExitCode, UsageError
from conrepair.runtime.files import make_folder, storage_error
from conrepair.runtime.progress import output_console, say
from conrepair.runtime.scratch import SCRATCH, kept_folder
from conrepair.runtime.store import journals

__all__ = ["repair", "repaired"]

_UNFINISHED = ".conrepair-unfinished"


def repair(options: argparse.Namespace) -> int:
    """Mend a target, or make the edits of a patch again.

    Returns:
        The exit code: 0 where the result is the source's equal, 1 where something is left, 130 where the search was
        ended by Ctrl-C.

    Raises:
        ConrepairError: if a file can't be loaded or edited.
    """
    if options.apply is not None:
        from conrepair.pipeline.apply_command import apply

        return apply(options)
    if options.target is None:
        raise UsageError("name the source and the target; only with --apply one model is enough.")
    done, written = repaired(options)
    if done.result is None:
        return _without_fault(done.before, as_json=options.format == "json")
    if options.format == "json":
        say(json.dumps(done.to_dict(), indent=2))
    else:
        print_repair(done.result, output_console(), written, done.row.repaired.advice)
    return done.exit_code


def repaired(options: argparse.Namespace) -> tuple[Repaired, Path | None]:
    """Mend a target, and write what came of it.

    Args:
        options: Of the command line.

    Returns:
        What came of it; and the folder, None where nothing was written: nothing was at fault, or the search was
        interrupted before it had anything.

    Raises:
        ConrepairError: if a file can't be loaded or edited.
    """
    asked = asked_of(options, layers=True)
    asked.check()
    folder = repair_folder(options.output, asked.target)
    check_repair_folder(folder, (asked.source, asked.target))
    wanted = RepairSettings(
        seconds=options.seconds,
        advice_seconds=options.advice,
        conversions=False,
        bake_recipe=options.bake_recipe,
    )
    settings = layer_settings(
        options.samples,
        batch_size=options.batch_size,
        margin=options.margin,
        latent=options.latent,
        timeout=options.timeout,
        repair=wanted,
    )
    with contextlib.ExitStack() as stack:
        make_folder(folder.parent)
        stack.enter_context(storage_error(folder.parent))
        room = stack.enter_context(
            kept_folder(folder.parent / f".{folder.name}{_UNFINISHED}", SCRATCH, _is_unfinished)
        )
        session = stack.enter_context(Session(room, quiet=options.quiet))
        done = repair_pair(asked, settings, session)
        return done.save(folder), folder if done.tells else None


def _without_fault(found: Localization, *, as_json: bool) -> int:
    """Say that there's nothing to repair, or that nothing was found of what the outputs show."""
    holds = found.is_right
    words = f"nothing to repair: {found.reason}" if holds else f"{found.verdict.value}: {found.reason}"
    if as_json:
        say(json.dumps({"mended": holds, "reason": words, "edits": [], "notes": found.notes}, indent=2))
    else:
        output_console().print(words)
        for note in found.notes:
            output_console().print(f"noted, and left as it is: {note}")
    return int(ExitCode.EQUIVALENT if holds else ExitCode.DIFFERENT)


def _is_unfinished(room: Path) -> bool:
    return bool(journals(room / "store"))

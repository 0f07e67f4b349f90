"""`conrepair repair`: mend a converted file in its own format; needs no configuration and no data."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from pathlib import Path

from conrepair.frameworks.detect import detect_framework
from conrepair.pipeline.apply_command import apply
from conrepair.pipeline.build_audit import compare_build, is_build
from conrepair.pipeline.localize_command import compare_files
from conrepair.report.encode import encode
from conrepair.report.repair.summary import print_repair
from conrepair.report.repair.write import check_repair_folder, write_repair
from conrepair.runtime.errors import ExitCode, UsageError
from conrepair.runtime.files import make_folder, storage_error
from conrepair.runtime.interruption import ended_gently
from conrepair.runtime.journal import end_early
from conrepair.runtime.progress import output_console, say
from conrepair.runtime.scratch import SCRATCH, kept_folder
from conrepair.runtime.store import journals

__all__ = ["repair"]

_UNFINISHED = ".conrepair-unfinished"
_LOCALIZED = 8  # samples that layers are compared on; the others verify


def repair(options: argparse.Namespace) -> int:
    """Mend a target, or make the edits of a patch again.

    Returns:
        The exit code: 0 where the result is the source's equal, 1 where something is left, 130 where the search was
        ended by Ctrl-C.

    Raises:
        ConrepairError: if a file can't be loaded or edited.
    """
    if options.apply is not None:
        return apply(options)
    if options.target is None:
        raise UsageError("name the source and the target; only with --apply one model is enough.")
    source, target = Path(options.source).resolve(), Path(options.target).resolve()
    compiled = is_build(target)
    for path in (source,) if compiled else (source, target):
        detect_framework(path)  # a file that isn't there is said at once
    folder = Path(options.output).absolute()
    check_repair_folder(folder, (source, target))
    with contextlib.ExitStack() as stack:
        make_folder(folder.parent)
        stack.enter_context(storage_error(folder.parent))
        room = stack.enter_context(
            kept_folder(folder.parent / f".{folder.name}{_UNFINISHED}", SCRATCH, _is_unfinished)
        )
        for journal in _searches(room):
            end_early(journal, wanted=False)
        stack.enter_context(ended_gently(lambda: _end_searches(room)))
        samples = {"samples": min(_LOCALIZED, options.samples)}
        repairs = {
            "seconds": options.seconds,
            "advice_seconds": options.advice,
            "conversions": False,
            "bake_recipe": options.bake_recipe,
        }
        if compiled:
            result = compare_build(
                options, source, target, stack, room, stages={"repair": True}, repair=repairs, localize=samples
            )
        else:
            result = compare_files(
                options, [source, target], stack, room, stages={"repair": True}, repair=repairs, localize=samples
            )
        row = result.rows[-1]
        if row.repair is None:  # no layer is at fault
            found = None if row.localization is None else row.localization.reason
            output_console().print(f"nothing to repair: {found}")
            return int(ExitCode.EQUIVALENT)
        written = folder if row.repair.edits else None
        if written is not None:
            write_repair(row.repair, written, row.advice)
    if options.format == "json":
        say(json.dumps({**encode(row.repair), "advice": encode(row.advice)}, indent=2))
    else:
        print_repair(row.repair, output_console(), written, row.advice)
    if row.repair.interrupted:
        return int(ExitCode.INTERRUPTED)
    return int(ExitCode.EQUIVALENT if row.repair.mended else ExitCode.DIFFERENT)


def _is_unfinished(room: Path) -> bool:
    return bool(_searches(room))


def _searches(room: Path) -> list[Path]:
    """Those that aren't finished."""
    return journals(room / "store")


def _end_searches(room: Path) -> bool:
    """Let them end with what they have; whether there are any."""
    for journal in (found := _searches(room)):
        end_early(journal)
    if found:
        sys.stderr.write("conrepair: the best that was verified is being written; Ctrl-C again stops at once\n")
    return bool(found)

"""`conrepair repair`: mend a converted file in its own format; needs no configuration and no data."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

from conrepair.frameworks.detect import detect_framework
from conrepair.pipeline.apply_command import apply
from conrepair.pipeline.build_audit import compare_build, is_build
from conrepair.pipeline.evaluation import error_of
from conrepair.pipeline.localize_command import compare_files
from conrepair.report.encode import encode
from conrepair.report.repair.summary import print_repair
from conrepair.report.repair.write import advice_in, check_repair_folder, made_anew, write_refusal, write_repair
from conrepair.report.result import RepairedTarget, Row
from conrepair.runtime.errors import ConrepairError, ExitCode, UsageError
from conrepair.runtime.files import make_folder, storage_error
from conrepair.runtime.interruption import ended_gently
from conrepair.runtime.journal import end_early
from conrepair.runtime.progress import output_console, say
from conrepair.runtime.scratch import SCRATCH, kept_folder
from conrepair.runtime.store import journals

__all__ = ["mended", "refused", "repair"]

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
        return apply(options)
    if options.target is None:
        raise UsageError("name the source and the target; only with --apply one model is enough.")
    row, written = mended(options)
    if row.repaired.result is None:
        return _without_fault(row, as_json=options.format == "json")
    if options.format == "json":
        say(json.dumps({**encode(row.repaired.result), "advice": encode(row.repaired.advice)}, indent=2))
    else:
        print_repair(row.repaired.result, output_console(), written, row.repaired.advice)
    if row.repaired.result.interrupted:
        return int(ExitCode.INTERRUPTED)
    return int(ExitCode.EQUIVALENT if row.repaired.result.mended else ExitCode.DIFFERENT)


def mended(options: argparse.Namespace) -> tuple[Row, Path | None]:
    """Mend a target, and write what came of it.

    Args:
        options: Of the command line.

    Returns:
        The target's row, without a repair where no layer is at fault; and the folder, None where nothing was
        written: nothing was at fault, or the search was interrupted before it had anything.

    Raises:
        ConrepairError: if a file can't be loaded or edited.
    """
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
        sections: dict[str, Any] = {
            "stages": {"repair": True},
            "repair": {
                "seconds": options.seconds,
                "advice_seconds": options.advice,
                "conversions": False,
                "bake_recipe": options.bake_recipe,
            },
        }
        if compiled:
            result = compare_build(options, source, target, stack, room, **sections)
        else:
            result = compare_files(options, [source, target], stack, room, **sections)
        row = result.rows[-1]
        if row.repaired.problem is not None:
            raise refused(row, folder)
        done = row.repaired.result
        tells = done is not None and bool(done.edits or (done.before.faults and not done.interrupted))
        if done is None or not tells:
            return row, None
        written = write_repair(done, folder, row.repaired.advice)
        advice = advice_in(row.repaired.advice, folder)
        return dataclasses.replace(row, repaired=RepairedTarget(result=written, advice=advice)), folder


def refused(row: Row, folder: Path) -> ConrepairError:
    """Why a target can't be repaired, once what is known of it was written.

    Args:
        row: Of a target that was localized, and not repaired.
        folder: For what is known.
    """
    problem = row.repaired.problem
    if problem is None or row.localized.result is None:
        raise ValueError("a target that was repaired, or not localized")
    if problem.circumstance:  # no room, no memory: the same command goes on with the search
        return error_of(problem)
    reason = " ".join(part for part in (problem.message, problem.explanation) if part)
    write_refusal(reason, row.localized.result, folder, row.repaired.advice)
    kept = f"written: {folder}"
    if name := made_anew(row.repaired.advice):
        kept += f", with {name}: made anew, no layer is at fault in it"
    return error_of(dataclasses.replace(problem, explanation="\n".join(filter(None, (problem.explanation, kept)))))


def _without_fault(row: Row, *, as_json: bool) -> int:
    """Say that there's nothing to repair, or that nothing was found of what the outputs show."""
    if row.localized.result is None:
        raise ValueError("a target that wasn't localized")
    found = row.localized.result
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

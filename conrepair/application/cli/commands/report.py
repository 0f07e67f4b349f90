"""What `conrepair report` does: all of a saved run's report made again, without running a model; or two compared."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.text import Text

from conrepair.application.cli.several import tell
from conrepair.application.report.again.run import Thresholds, judged_again, missing_of
from conrepair.application.report.changes.baseline import held_against
from conrepair.application.report.encode import encode
from conrepair.application.report.folder import check_folder, pages_of, run_output, write_folder
from conrepair.application.report.machine.sarif import github_lines
from conrepair.application.report.repair.files import repair_files
from conrepair.application.report.result import AuditResult, Row
from conrepair.application.report.saved import DOCUMENT, read_result, result_text
from conrepair.application.report.texts import texts_of
from conrepair.diagnosis.repairs.patch import patch_files
from conrepair.ground.runtime.errors import UsageError
from conrepair.ground.runtime.files.outputs import Output, lies_in, place_in
from conrepair.ground.runtime.files.whole import put_text, write_json
from conrepair.ground.runtime.path_text import real_path
from conrepair.ground.runtime.shown.progress import output_console, say

_MOST = 2  # runs that are compared
_SHOWN = 10


def report(options: argparse.Namespace) -> int:
    """Make a run's report again, or compare two runs.

    Returns:
        The exit code: the run's, as it's judged now; of two runs 1 where something got worse.

    Raises:
        ConrepairError: if a run can't be read, or nothing can be written.
    """
    thresholds = Thresholds(
        margin=options.margin, rtol=options.rtol, atol=options.atol, relative_l2=options.relative_l2
    )
    for name, value in thresholds.given.items():
        if value < 0:
            raise UsageError(f"--{name.replace('_', '-')} is {value:g}: give at least 0.")
    if len(options.runs) > _MOST:
        raise UsageError(f"{len(options.runs)} runs are named: give one, or two to compare.")
    runs = [judged_again(read_result(_place(Path(run))), thresholds) for run in options.runs]
    output = None if options.output is None else Path(options.output).absolute()
    photos = () if options.data is None else (Path(options.data).absolute(),)
    runs[-1] = held_against(runs[-1], options.baseline, update=options.update_baseline)
    if len(runs) == _MOST:
        return _compare(runs[0], runs[1], output, options.format)
    return _again(runs[0], output, photos, options.format)


def _place(named: Path) -> Path:
    """Where the document is: `compare`, and verbs with several targets, write a folder into the one that's named.

    Raises:
        UsageError: if it can't be told which one is meant.
    """
    if not named.is_dir() or (named / DOCUMENT).exists():
        return named
    inside = sorted(file.parent for file in named.glob(f"*/{DOCUMENT}"))
    if len(inside) > 1:
        known = "".join(f"\n  {folder}" for folder in inside[:_SHOWN])
        raise UsageError(f"{named} holds {len(inside)} runs. Name one of them:{known}")
    return inside[0] if inside else named


def _compare(before: AuditResult, after: AuditResult, output: Path | None, form: str) -> int:
    from conrepair.application.report.changes.changes import changes_between
    from conrepair.application.report.changes.console import print_changes
    from conrepair.application.report.page.page import COMPARISON, comparison_html

    changes, folder = changes_between(before, after), output or after.folder
    # There it's part of the run, and goes with it.
    own = next((run for run in (after, before) if real_path(run.folder) == real_path(folder)), None)
    page = Output(folder / COMPARISON, "comparison of runs", beside=True)
    if own is None:
        page.check()
    with page.write() if own is None else run_output(real_path(folder), own.kind).write(parts=True) as made:
        place = made.parent if own is None else made
        put_text(place / COMPARISON, comparison_html(changes))
        write_json(place / "comparison.json", encode(changes.to_dict()))
    if form == "json":
        say(json.dumps(encode(changes.to_dict()), indent=1, ensure_ascii=False))
    else:
        print_changes(changes, output_console(), folder / COMPARISON)
    for line in github_lines(after) if form == "github" else ():
        say(line)
    return changes.exit_code


def _again(result: AuditResult, output: Path | None, photos: Sequence[Path], form: str) -> int:
    missing, told = [*dict.fromkeys(missing_of(result, photos))], result.notes
    result = dataclasses.replace(result, notes=tuple(dict.fromkeys([*told, *missing])))
    if output is not None and output != result.folder:
        check_folder(output, result.kind, [result.folder])
        result = _written(result, output, photos)
    else:
        _rewrite(result, photos)
    if form == "json":
        say(result_text(result))
        return result.exit_code
    console = output_console()
    for words in missing:
        console.print(Text.assemble(("missing: ", "bold"), words))
    tell(dataclasses.replace(result, notes=told), form, result.folder)
    return result.exit_code


def _written(result: AuditResult, folder: Path, photos: Sequence[Path]) -> AuditResult:
    """The whole of it in another folder; with what a repair made, where that lies in the run's own."""
    run = dataclasses.replace(result, folder=folder)

    def fill(temporary: Path) -> AuditResult:
        row = run.rows[-1]
        if run.kind != "repair" or not all(lies_in(result.folder, path) for path in _made(row)):
            return run
        return run.with_row(dataclasses.replace(row, repaired=repair_files(row.repaired, temporary, folder)))

    return write_folder(run, fill, photos)


def _made(row: Row) -> Iterator[Path]:
    done = row.repaired.result
    models = [item.model for item in row.repaired.advice] + ([done.model] if done is not None else [])
    yield from (Path(model.path) for model in models if model is not None)
    if done is not None and done.patch is not None:
        yield Path(done.patch)
        yield from patch_files(Path(done.patch))


def _rewrite(result: AuditResult, photos: Sequence[Path]) -> None:
    """The texts and the page of a run's folder; its document stays, and whatever else lies there.

    Raises:
        UsageError: if one of them isn't as it was written: somebody has put something into it.
    """
    with run_output(real_path(result.folder), result.kind).write(parts=True) as temporary:
        for name, text in {**texts_of(result), **pages_of(result, photos)}.items():
            file = place_in(temporary, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            put_text(file, text)

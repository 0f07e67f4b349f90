"""Runs that can be interrupted: rows are kept as they come, and the rest is run the next time."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.common.cases import Case
from benchmarks.common.rows import CaseRow, read_rows, row_of, write_rows
from benchmarks.common.running import say, some_workers
from conrepair.runtime.workers import Outcome, Workers

__all__ = ["run_rows"]

Row = TypeVar("Row", bound=CaseRow)
Run = Callable[[Sequence[Case], Path, Workers], Iterator[tuple[Case, Outcome | str]]]

_EVERY = 10  # rows, that the file is written


def run_rows(
    options: argparse.Namespace,
    sort: type[Row],
    about: Mapping[str, Any],
    cases: Sequence[Case],
    run: Run,
    told: Callable[[Row], str],
) -> list[Row]:
    """A row for each case, and those of the file that is continued; with `--json` written as they come.

    Args:
        options: From `add_options`.
        sort: Of row.
        about: What the run is of: a file that says something else isn't continued.
        cases: Which.
        run: Carries cases out, given a folder and workers.
        told: What a row says to whoever watches.
    """
    rows = _kept(options, sort, about)
    known = {row.case.name for row in rows}
    left = [case for case in cases if case.name not in known]
    started = time.perf_counter()
    with (
        tempfile.TemporaryDirectory(prefix="conrepair-benchmark-") as scratch,
        some_workers(options.lanes) as workers,
    ):
        try:
            for place, (case, outcome) in enumerate(run(left, Path(scratch), workers), len(cases) - len(left) + 1):
                row = row_of(sort, case, outcome)
                rows.append(row)
                passed = f"{time.perf_counter() - started:.0f} s, {place}/{len(cases)}"
                say(f"{passed} {row.case.name}: {told(row)}")
                if options.json and len(rows) % _EVERY == 0:
                    write_rows(options.json, about, rows)
        finally:
            if options.json:
                write_rows(options.json, about, rows)
    return rows


def _kept(options: argparse.Namespace, sort: type[Row], about: Mapping[str, Any]) -> list[Row]:
    if not options.json or not options.json.exists() or options.fresh:
        return []
    before, rows = read_rows(sort, options.json)
    if before != about:
        sys.exit(
            f"{options.json} is of another run or other code ({before}, now {about}). Give --fresh, or another file."
        )
    say(f"{len(rows)} rows are kept")
    return rows

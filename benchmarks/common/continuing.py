"""Runs that can be interrupted: rows are kept as they come, and the rest is run the next time."""

from __future__ import annotations

import argparse
import functools
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.common.cases import Case
from benchmarks.common.rows import CaseRow, read_rows, row_of, write_rows
from benchmarks.common.running import say, some_workers
from conrepair.ground.runtime.processes.workers import Outcome, Workers

__all__ = ["kept_rows", "run_rows"]

Row = TypeVar("Row", bound=CaseRow)
Kept = TypeVar("Kept")
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
    rows = kept_rows(options.json, about, functools.partial(read_rows, sort), fresh=options.fresh)
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


def kept_rows(
    path: Path | None,
    about: Mapping[str, Any],
    read: Callable[[Path], tuple[dict[str, Any], list[Kept]]],
    *,
    fresh: bool = False,
) -> list[Kept]:
    """Rows that a run has already.

    Ends the program where the file is of another run.

    Args:
        path: Of the file that keeps them; None: there's none.
        about: What the run is of.
        read: The file, as what it says that the run was of, and its rows.
        fresh: Whether it's begun anew.
    """
    if not path or not path.exists() or fresh:
        return []
    before, rows = read(path)
    if before != about:
        sys.exit(f"{path} is of another run or other code ({before}, now {about}). Give --fresh, or another file.")
    say(f"{len(rows)} rows are kept")
    return rows

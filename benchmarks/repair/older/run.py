"""Run the older tool's conversions: each model is made once, rows are kept as they come."""

from __future__ import annotations

import dataclasses
import itertools
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.common.continuing import kept_rows
from benchmarks.common.running import say, some_workers
from benchmarks.repair.older.cases import OlderCase
from benchmarks.repair.older.making import Made, NotMadeError
from benchmarks.repair.older.rows import OlderRow, read_older, write_older
from benchmarks.repair.older.tables import share
from benchmarks.repair.older.trial import audited
from conrepair.application.engine.fingerprint import code_fingerprint
from conrepair.ground.runtime.errors import ConrepairError

__all__ = ["measure", "run_older"]


def run_older(cases: Sequence[OlderCase], photos: int, path: Path | None, *, fresh: bool = False) -> list[OlderRow]:
    """Carry the cases out that have no row yet.

    Ends the program where the file is of another run.

    Args:
        cases: Which.
        photos: How many at most.
        path: Of the file that keeps rows; None: they aren't kept.
        fresh: Whether it's begun anew.
    """
    about = {"photos": photos, "code": code_fingerprint("repair")[:16]}
    rows = kept_rows(path, about, read_older, fresh=fresh)
    known = {row.name for row in rows}
    left = [case for case in cases if case.name not in known]
    with tempfile.TemporaryDirectory(prefix="conrepair-benchmark-") as scratch:
        for row in measure(left, photos, Path(scratch)):
            rows.append(row)
            say(f"{row.name}: {row.status} {row.words}, {share(row.before)} differ, then {share(row.after)}")
            if path is not None:
                write_older(path, about, rows)
    return rows


def measure(cases: Sequence[OlderCase], photos: int, folder: Path) -> Iterator[OlderRow]:
    """Convert, audit, localize, repair, and audit what came out.

    Args:
        cases: Which.
        photos: How many at most.
        folder: For models and audits.
    """
    made = Made(folder / "models")
    for _, group in itertools.groupby(cases, key=lambda case: (case.model, case.published, bool(case.fault))):
        some = list(group)
        with some_workers(1) as workers:  # which are gone, with what converters keep in memory, before the audits
            made.make(some, workers)
            for case in some:
                if case.fault:
                    made.put_in(case, workers)
        for case in some:
            try:
                (source, target), words = made.sides(case), ""
                if case.fault:
                    target, words = made.faulty(case)
                row = audited(case, source, target, photos, folder / "audits")
                row = dataclasses.replace(row, injected=words)
            except (ConrepairError, NotMadeError) as error:
                row = OlderRow(case.name, "failed", str(error))
            yield row

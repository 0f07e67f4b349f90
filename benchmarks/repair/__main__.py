"""How many faults repair mends, by how small changes, and that it mends nothing where nothing is wrong.

    python -m benchmarks.repair [--quick] [--only MODEL,...] [--formats FORMAT,...] [--groups GROUP,...]
                                [--seeds development|reporting] [--case NAME ...] [--list] [--lanes N]
                                [--seconds N] [--json FILE] [--fresh] [-o FILE]
    python -m benchmarks.repair --cases older [--only MODEL,...] [--photos N] [--json FILE] [--fresh] [-o FILE]
    python -m benchmarks.repair --tables FILE

The models, faults and conversions of `benchmarks.localization`, each repaired in a worker process. What counts is
measured anew on samples that the repair didn't see: the written file is loaded by its own framework, its answers are
compared with the source's, and it's localized once more.

More groups than there: "several" has faults in TFLite, Keras and PyTorch files too; "quantized" are faults in targets
that are meant to be stored in eight bits.

Cases are run in a random order that's always the same, so that a part of them stands for all. With --json, rows are
written as they come, and a run that was interrupted is continued; --fresh begins anew.

"--cases older" are the conversions of the older ConRepAIr, see `benchmarks.repair.older`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.common.cases import Case
from benchmarks.common.running import add_options, chosen_cases, run_cases, say, some_workers
from benchmarks.repair.cases import asked_by_command, plan
from benchmarks.repair.older import report as report_older
from benchmarks.repair.older import run_older
from benchmarks.repair.rows import Row, read_rows, row_of, write_rows
from benchmarks.repair.sums import sums
from benchmarks.repair.tables import report
from conrepair.pipeline.fingerprint import code_fingerprint

_SECONDS = 240.0
_BESIDE = 600.0  # seconds that all the rest of a case may take
_EVERY = 5  # rows, that the file is written
_ORDER = 1


def main() -> int:
    """Run and print; returns 1 for a target that was made worse, a correct one that was touched, or a failure."""
    options = _options()
    if options.tables:
        print(report(read_rows(options.tables)[1]))
        return 0
    if options.cases == "older":
        return _older(options)
    cases = chosen_cases(options, plan)
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    about = {
        "seeds": options.seeds,
        "quick": options.quick,
        "seconds": options.seconds,
        "code": code_fingerprint("repair")[:16],
    }
    rows = _kept(options, about)
    _run(options, _shuffled(cases), about, rows)
    _tell(options, report(rows))
    whole = sums(rows)
    return int(bool(whole.worse or whole.touched or whole.failed))


def _older(options: argparse.Namespace) -> int:
    rows = run_older(options.only, options.photos, options.json, fresh=options.fresh)
    _tell(options, report_older(rows))
    return int(any(row.after != 0 for row in rows))


def _tell(options: argparse.Namespace, text: str) -> None:
    if options.output:
        options.output.write_text(text + "\n", encoding="utf-8")
    print(text)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument(
        "--cases",
        choices=("injected", "older"),
        default="injected",
        help="faults that are injected, or the conversions that the older ConRepAIr repaired",
    )
    parser.add_argument("--photos", type=int, default=71, help="of the older cases (default 71)")
    parser.add_argument("--seconds", type=float, default=_SECONDS, help="for the search of one repair (default 240)")
    parser.add_argument("--fresh", action="store_true", help="with --json: begin anew where the file has rows")
    return parser.parse_args()


def _shuffled(cases: list[Case]) -> list[Case]:
    return [cases[index] for index in np.random.default_rng(_ORDER).permutation(len(cases))]


def _kept(options: argparse.Namespace, about: dict[str, object]) -> list[Row]:
    """Rows of the run that is continued."""
    if not options.json or not options.json.exists() or options.fresh:
        return []
    before, rows = read_rows(options.json)
    if before != about:
        sys.exit(
            f"{options.json} is of another run or other code ({before}, now {about}). Give --fresh, or another file."
        )
    say(f"{len(rows)} rows are kept")
    return rows


def _run(options: argparse.Namespace, cases: list[Case], about: dict[str, object], rows: list[Row]) -> None:
    """Add a row for each case that has none."""
    known = {row.case.name for row in rows}
    left = [case for case in cases if case.name not in known]
    asked = asked_by_command(sorted(cases, key=lambda case: case.name))
    started = time.perf_counter()
    with (
        tempfile.TemporaryDirectory(prefix="conrepair-benchmark-") as scratch,
        some_workers(options.lanes) as workers,
    ):
        outcomes = run_cases(
            left,
            Path(scratch),
            workers,
            "benchmarks.repair.trial:run",
            timeout=options.seconds + _BESIDE,
            quick=options.quick,
            unseen=True,
            more=lambda case: {"command": case.name in asked, "seconds": options.seconds},
        )
        try:
            for case, outcome in outcomes:
                row = row_of(case, outcome)
                rows.append(row)
                passed = f"{time.perf_counter() - started:.0f} s, {len(rows)}/{len(cases)}"
                judged = row.score.outcome if row.status == "measured" else row.status
                say(f"{passed} {row.case.name}: {judged}")
                if options.json and len(rows) % _EVERY == 0:
                    write_rows(options.json, about, rows)
        finally:
            if options.json:
                write_rows(options.json, about, rows)


if __name__ == "__main__":
    sys.exit(main())

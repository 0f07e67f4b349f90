"""How many faults repair fixes, by how small changes, and that it fixes nothing where nothing is wrong.

    python -m benchmarks.repair [--quick] [--only MODEL,...] [--formats FORMAT,...] [--groups GROUP,...]
                                [--seeds development|reporting] [--case NAME ...] [--list] [--lanes N]
                                [--first N] [--seconds N] [--json FILE] [--fresh] [-o FILE]
    python -m benchmarks.repair --cases older [--only MODEL,...] [--case NAME ...] [--list] [--photos N]
                                [--json FILE] [--fresh] [-o FILE]
    python -m benchmarks.repair --tables FILE

The models, faults and conversions of `benchmarks.localization`, each repaired in a worker process. What counts is
measured anew on samples that the repair didn't see: the written file is loaded by its own framework, its answers are
compared with the source's, and it's localized once more.

More groups than there: "several" has faults in TFLite, Keras and PyTorch files too; "quantized" are faults in targets
that are meant to be stored in eight bits.

Cases are run in a random order that's always the same, so that a part of them stands for all. With --json, rows are
written as they come, and a run that was interrupted is continued; --fresh begins anew.

"--cases older" are the conversions of the older ConRepAIr, see `benchmarks.repair.older.cases`; the photos of the
target are prepared rightly or wrongly, or it has a fault. What counts is the share of photos whose best class
differs, measured by a second audit of what came out: the repaired file if there's one, fed by the recipe that repair
set if it set one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.common.cases import Case
from benchmarks.common.continuing import run_rows
from benchmarks.common.models import MODELS
from benchmarks.common.rows import read_rows
from benchmarks.common.running import add_options, chosen_cases, run_cases
from benchmarks.repair.cases import asked_by_command, plan
from benchmarks.repair.older.cases import chosen as chosen_older
from benchmarks.repair.older.run import run_older
from benchmarks.repair.older.tables import report_older
from benchmarks.repair.rows import Row
from benchmarks.repair.sums import sums
from benchmarks.repair.tables import report
from conrepair.application.engine.fingerprint import code_fingerprint
from conrepair.ground.runtime.processes.workers import Outcome, Workers

_SECONDS = 240.0
_BESIDE = 600.0  # seconds that all the rest of a case may take


def main() -> int:
    """Run and print; returns 1 for a target made worse, a correct one touched, a failure, or a contradiction."""
    options = _options()
    if options.tables:
        print(report(read_rows(Row, options.tables)[1]))
        return 0
    if options.cases == "older":
        return _older(options)
    cases = chosen_cases(options, plan)
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    rows = _run(options, cases)
    _tell(options, report(rows))
    whole = sums(rows)
    return int(bool(whole.worse or whole.touched or whole.failed or any(row.agrees is False for row in rows)))


def _older(options: argparse.Namespace) -> int:
    try:
        cases = chosen_older(options.only or list(MODELS), options.case)
    except ValueError as error:
        sys.exit(str(error))
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    rows = run_older(cases, options.photos, options.json, fresh=options.fresh)
    _tell(options, report_older(rows))
    return int(any(row.after != 0 or row.left for row in rows))


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
    return parser.parse_args()


def _run(options: argparse.Namespace, cases: list[Case]) -> list[Row]:
    asked = asked_by_command(sorted(cases, key=lambda case: case.name))

    def run(left: Sequence[Case], folder: Path, workers: Workers) -> Iterator[tuple[Case, Outcome | str]]:
        return run_cases(
            left,
            folder,
            workers,
            "benchmarks.repair.trial:run",
            timeout=options.seconds + _BESIDE,
            quick=options.quick,
            unseen=True,
            more=lambda case: {"command": case.name in asked, "seconds": options.seconds},
        )

    about = {
        "seeds": options.seeds,
        "quick": options.quick,
        "seconds": options.seconds,
        "code": code_fingerprint("repair")[:16],
    }
    return run_rows(options, Row, about, cases, run, _judged)


def _judged(row: Row) -> str:
    return row.score.outcome if row.status == "measured" else row.status


if __name__ == "__main__":
    sys.exit(main())

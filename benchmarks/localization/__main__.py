"""How well localization names faults, and that it doesn't name any where there are none.

    python -m benchmarks.localization [--quick] [--only MODEL,...] [--formats FORMAT,...] [--groups GROUP,...]
                                      [--seeds development|reporting] [--case NAME ...] [--list]
                                      [--first N] [--lanes N] [--json FILE] [--fresh] [-o FILE]
    python -m benchmarks.localization --tables FILE

Models are made, converted, and given known faults (the catalogue of `benchmarks.faults`); or they are converted and
written otherwise without any. Every case runs in a worker process with a time limit; a crash is a row. Only faults
that change an output count. Conversions that are off by themselves are in no share; a table has them one by one.

The groups: "onnx" (faults in ONNX), "converted" (faulty ONNX, converted on), "native" (faults in TFLite, Keras and
PyTorch files), "framework" (put in by PyTorch, Keras, TFLite's schema or protobuf: not by the editors of repair),
"exporter" (PyTorch's older exporter made wrong), "several" (two and three faults at once), "correct" (nothing may be
found), "intended" (another precision, that the converter was asked for: nothing may be found either).

Cases are run in a random order that's always the same, so that a part of them (--first) stands for all. With --json,
rows are written as they come, and a run that was interrupted is continued; --fresh begins anew.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.common.cases import Case, plan
from benchmarks.common.continuing import run_rows
from benchmarks.common.rows import read_rows
from benchmarks.common.running import add_options, chosen_cases, run_cases
from benchmarks.localization.rows import Row, sums
from benchmarks.localization.tables import report
from conrepair.application.engine.fingerprint import code_fingerprint
from conrepair.ground.runtime.processes.workers import Outcome, Workers

_TIMEOUT = 300.0


def main() -> int:
    """Run and print; returns 1 for a false alarm, a failure, a fault that isn't detected, or a contradiction."""
    options = _options()
    if options.tables:
        print(report(read_rows(Row, options.tables)[1]))
        return 0
    cases = chosen_cases(options, plan)
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    about = {"seeds": options.seeds, "quick": options.quick, "code": code_fingerprint("localize")[:16]}
    rows = run_rows(options, Row, about, cases, functools.partial(_run, quick=options.quick), _judged)
    text = report(rows)
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    print(text)
    whole = sums(rows)
    wrong = whole.false_alarms or whole.failed or (1.0 if whole.detected is None else whole.detected) < 1
    return int(bool(wrong or any(row.agrees is False for row in rows)))


def _run(
    cases: Sequence[Case], folder: Path, workers: Workers, *, quick: bool
) -> Iterator[tuple[Case, Outcome | str]]:
    return run_cases(cases, folder, workers, "benchmarks.localization.trial:run", timeout=_TIMEOUT, quick=quick)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    return parser.parse_args()


def _judged(row: Row) -> str:
    if row.false_alarm:
        return f"{row.status}, FALSE ALARM"
    return f"{row.status}, missed" if row.missed else row.status


if __name__ == "__main__":
    sys.exit(main())

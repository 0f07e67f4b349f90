"""How well localization names faults, and that it doesn't name any where there are none.

    python -m benchmarks.localization [--quick] [--only MODEL,...] [--formats FORMAT,...] [--groups GROUP,...]
                                      [--seeds development|reporting] [--case NAME ...] [--list]
                                      [--lanes N] [--json FILE] [-o FILE]
    python -m benchmarks.localization --tables FILE

Models are made, converted, and given known faults (the catalogue of `conrepair.faults`); or they are converted and
written otherwise without any. Every case runs in a worker process with a time limit; a crash is a row. Only faults
that change an output count, and only conversions that are correct without them: others are listed.

The groups: "onnx" (faults in ONNX), "converted" (faulty ONNX, converted on), "native" (faults in TFLite, Keras and
PyTorch files), "several" (two and three faults at once), "correct" (nothing may be found), "intended" (another
precision, that the converter was asked for: nothing may be found either).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.common.cases import plan
from benchmarks.common.running import add_options, chosen_cases, run_cases, say, some_workers
from benchmarks.localization.rows import Row, from_json, row_of, sums
from benchmarks.localization.tables import report

_TIMEOUT = 300.0


def main() -> int:
    """Run and print; returns 1 for a false alarm, a failure, or a fault that isn't detected."""
    options = _options()
    if options.tables:
        print(report([from_json(row) for row in json.loads(options.tables.read_text(encoding="utf-8"))["cases"]]))
        return 0
    cases = chosen_cases(options, plan)
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    started = time.perf_counter()
    rows: list[Row] = []
    with (
        tempfile.TemporaryDirectory(prefix="conrepair-benchmark-") as scratch,
        some_workers(options.lanes) as workers,
    ):
        trial = "benchmarks.localization.trial:run"
        for case, outcome in run_cases(cases, Path(scratch), workers, trial, timeout=_TIMEOUT, quick=options.quick):
            row = row_of(case, outcome)
            rows.append(row)
            passed = f"{time.perf_counter() - started:.0f} s, {len(rows)}/{len(cases)}"
            say(f"{passed} {row.case.name}: {row.status}{_mark(row)}")
            if options.json and len(rows) % 50 == 0:
                _write(options, rows, time.perf_counter() - started)
    _write(options, rows, time.perf_counter() - started)
    text = report(rows)
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    print(text)
    whole = sums(rows)
    return int(bool(whole.false_alarms or whole.failed or (whole.detected or 1.0) < 1))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    return parser.parse_args()


def _mark(row: Row) -> str:
    if row.false_alarm:
        return ", FALSE ALARM"
    return ", missed" if row.missed else ""


def _write(options: argparse.Namespace, rows: Sequence[Row], seconds: float) -> None:
    if options.json:
        value = {"seeds": options.seeds, "seconds": round(seconds), "cases": [row.as_json() for row in rows]}
        options.json.write_text(json.dumps(value, indent=1), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

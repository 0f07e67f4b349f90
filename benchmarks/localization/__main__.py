"""How well localization names faults, and that it doesn't name any where there are none.

    python -m benchmarks.localization [--quick] [--only MODEL,...] [--formats FORMAT,...] [--groups GROUP,...]
                                      [--seeds development|reporting] [--case NAME ...] [--list]
                                      [--json FILE] [-o FILE]
    python -m benchmarks.localization --tables FILE

Models are made, converted, and given known faults (the catalogue of `conrepair.faults`); or they are converted and
written otherwise without any. Every case runs in a worker process with a time limit; a crash is a row. Only faults
that change an output count, and only conversions that are correct without them: others are listed.

The groups: "onnx" (faults in ONNX), "converted" (faulty ONNX, converted on), "native" (faults in TFLite, Keras and
PyTorch files), "several" (two and three faults at once), "correct" (nothing may be found), "intended" (another
precision on purpose: what's found is listed and doesn't count).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.localization.cases import DEVELOPMENT_SEEDS, REPORTING_SEEDS, Case, plan
from benchmarks.localization.lanes import run_all
from benchmarks.localization.models import MODELS
from benchmarks.localization.rows import Row, from_json, row_of, sums, unmade
from benchmarks.localization.sides import Sides
from benchmarks.localization.tables import report
from conrepair.converters.registry import converter
from conrepair.runtime.workers import Job, Workers

_SEEDS = {"development": DEVELOPMENT_SEEDS, "reporting": REPORTING_SEEDS}
_TIMEOUT = 300.0
_MEMORY_GB = 10.0


def main() -> int:
    """Run and print; returns 1 for a false alarm, a failure, or a fault that isn't detected."""
    options = _options()
    if options.tables:
        print(report([from_json(row) for row in json.loads(options.tables.read_text(encoding="utf-8"))["cases"]]))
        return 0
    cases = _chosen(options)
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    started = time.perf_counter()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="conrepair-benchmark-") as scratch, _workers() as workers:
        for row in _run(cases, Path(scratch), workers, quick=options.quick):
            rows.append(row)
            passed = f"{time.perf_counter() - started:.0f} s, {len(rows)}/{len(cases)}"
            _say(f"{passed} {row.case.name}: {row.status}{_mark(row)}")
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
    parser.add_argument("--quick", action="store_true", help="some of each sort, without the two largest models")
    parser.add_argument("--only", type=_names, default=list(MODELS), metavar="MODEL,...", help=", ".join(MODELS))
    parser.add_argument("--formats", type=_names, metavar="FORMAT,...", help="of targets")
    parser.add_argument("--groups", type=_names, metavar="GROUP,...")
    parser.add_argument("--seeds", choices=list(_SEEDS), default="development")
    parser.add_argument("--case", action="append", metavar="NAME", help="only this case, as it's listed")
    parser.add_argument("--list", action="store_true", help="name the cases, and run none")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rows there")
    parser.add_argument("--tables", type=Path, metavar="FILE", help="run nothing; tables of what --json wrote there")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the tables there")
    options = parser.parse_args()
    if unknown := [name for name in options.only if name not in MODELS]:
        parser.error(f"there is no model {unknown[0]}; there are {', '.join(MODELS)}")
    return options


def _names(text: str) -> list[str]:
    return text.split(",")


def _chosen(options: argparse.Namespace) -> list[Case]:
    cases = plan(options.only, _SEEDS[options.seeds], quick=options.quick)
    if options.case:
        found = [case for case in cases if case.name in options.case]
        if len(found) < len(set(options.case)):
            missing = next(name for name in options.case if name not in {case.name for case in found})
            sys.exit(f"there is no case {missing}; --list names them (with the same --seeds)")
        return found
    return [
        case
        for case in cases
        if (not options.formats or case.format in options.formats)
        and (not options.groups or case.group in options.groups)
    ]


def _workers() -> Workers:
    return Workers(2, memory_gb=_MEMORY_GB)


def _run(cases: Sequence[Case], folder: Path, workers: Workers, *, quick: bool) -> Iterator[Row]:
    sides = Sides(folder, workers)
    sides.make([(case.model, side) for case in cases for side in (case.source, case.base)], _say)
    jobs = []
    for place, case in enumerate(cases):
        failed = [side for side in (case.source, case.base) if sides.get(case.model, side) is None]
        if failed:
            yield unmade(case, sides.failures[case.model, failed[0]])
        else:
            jobs.append((case, _job(case, sides, folder / f"case-{place}", quick=quick)))
    for case, outcome in run_all(workers, jobs):
        yield row_of(case, outcome)


def _job(case: Case, sides: Sides, folder: Path, *, quick: bool) -> Job:
    model = MODELS[case.model]
    payload: dict[str, Any] = {
        "source": sides.get(case.model, case.source),
        "base": sides.get(case.model, case.base),
        "data": sides.data[case.model],
        "samples": model.batch_size if quick else model.samples,
        "batch_size": model.batch_size,
        "faults": list(case.faults),
        "count": case.count,
        "seed": case.seed,
        "rewriting": case.rewriting,
        "route": list(case.route),
        "precision": case.precision,
        "agree": case.agree,
    }
    needs = frozenset[str]().union(*(converter(name).needs for name in case.route), {case.format})
    return Job("benchmarks.localization.trial:run", payload, folder, needs, _TIMEOUT)


def _mark(row: Row) -> str:
    if row.false_alarm:
        return ", FALSE ALARM"
    return ", missed" if row.missed else ""


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _write(options: argparse.Namespace, rows: Sequence[Row], seconds: float) -> None:
    if options.json:
        value = {"seeds": options.seeds, "seconds": round(seconds), "cases": [row.as_json() for row in rows]}
        options.json.write_text(json.dumps(value, indent=1), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

"""Whether the arithmetic that a device computes in is recognised, right answers are left alone, and faults are found.

    python -m benchmarks.arithmetics [--seeds development|reporting] [--only ARITHMETIC,...] [--device DEVICE,...]
                                     [--openvino PYTHON] [--qnn PYTHON] [--case NAME ...] [--list] [--first N]
                                     [--json FILE] [--fresh] [-o FILE]
    python -m benchmarks.arithmetics --tables FILE

Networks are trained on digits for some steps (two are pretrained on photos), and computed, right and with a fault in
one layer, by devices: "own" (an ONNX file node by node, numbers rounded), "pytorch" (modules in another type),
"onnxruntime" (eight bits as its quantization writes them), "openvino" and "qnn" (by interpreters that have them).
`compare` is asked about the outputs alone, `localize` about all tensors that a device gives. Columns: "named": the
arithmetic is; "above": the fault changes three times what the arithmetic does, at the outputs or, fed what's right,
at its layer, in float64; only such faults are to be found; "first": the first layers named have the fault. The
reporting seeds draw other networks, and more families.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetics.cases import HERE, Case, plan
from benchmarks.arithmetics.devices import DEVICES, Device, Missing, opened
from benchmarks.arithmetics.rounding import ARITHMETICS
from benchmarks.arithmetics.tables import is_wrong, tables
from benchmarks.arithmetics.trial import Trial
from benchmarks.common.running import SEEDS, named_cases
from conrepair.application.engine.fingerprint import code_fingerprint

_KEPT = Path("generated/benchmarks/arithmetics")
_ORDER = 1


def main() -> int:
    """Run and print; returns 1 for a right answer that's called faulty, or a fault that isn't."""
    options = _options()
    if options.tables:
        rows = _read(options.tables)
        print(tables(rows, []))
        return int(any(map(is_wrong, rows)))
    cases = _chosen(options)
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    with contextlib.ExitStack() as stack:
        devices, about = _devices(options, cases, stack)
        rows = _run([case for case in cases if case.device in devices], devices, options)
    text = tables(rows, about)
    if options.output:
        options.output.write_text(text + "\n", encoding="utf-8")
    print(text)
    return int(any(map(is_wrong, rows)))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", choices=list(SEEDS), default="development")
    parser.add_argument("--only", type=_among(ARITHMETICS), metavar="ARITHMETIC,...", help=", ".join(ARITHMETICS))
    parser.add_argument("--device", type=_among(DEVICES), metavar="DEVICE,...", help=", ".join(DEVICES))
    parser.add_argument("--openvino", metavar="PYTHON", help="an interpreter that has openvino and numpy")
    parser.add_argument("--qnn", metavar="PYTHON", help="an interpreter that has onnxruntime-qnn and numpy")
    parser.add_argument("--case", action="append", metavar="NAME", help="only this case, as it's listed")
    parser.add_argument("--list", action="store_true", help="name the cases, and run none")
    parser.add_argument("--first", type=int, metavar="N", help="only so many, of a random order")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="a row a case as JSON lines; a run goes on from them"
    )
    parser.add_argument("--fresh", action="store_true", help="with --json: begin anew where the file has rows")
    parser.add_argument("--tables", type=Path, metavar="FILE", help="run nothing; tables of what --json wrote there")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the tables there")
    return parser.parse_args()


def _among(known: Any) -> Any:
    def names(text: str) -> list[str]:
        found = text.split(",")
        if unknown := [name for name in found if name not in known]:
            raise argparse.ArgumentTypeError(f"there is no {unknown[0]}; there are {', '.join(known)}")
        return found

    return names


def _chosen(options: argparse.Namespace) -> list[Case]:
    """Cases in a random order that is always the same, those of a network together."""
    cases = plan(SEEDS[options.seeds])
    if options.case:
        return named_cases(cases, options.case)
    cases = [
        case
        for case in cases
        if case.arithmetic in (options.only or ARITHMETICS) and case.device in (options.device or DEVICES)
    ]
    order = np.random.default_rng(_ORDER).permutation(len(cases))
    return sorted((cases[index] for index in order[: options.first]), key=lambda case: case.network)


def _devices(
    options: argparse.Namespace, cases: Sequence[Case], stack: contextlib.ExitStack
) -> tuple[dict[str, Device], list[str]]:
    """Those that are there, and words on all that cases want."""
    found: dict[str, Device] = {}
    about = []
    pythons = {"openvino": options.openvino, "qnn": options.qnn}
    for name in [name for name in HERE if name in {case.device for case in cases}]:
        try:
            found[name] = opened(name, pythons)
        except (Missing, OSError) as error:
            about.append(f"{name}: not measured, {error}")
            continue
        stack.callback(found[name].close)
        about.append(f"{name}: {found[name].about or 'the benchmark itself'}")
    return found, about


def _run(cases: Sequence[Case], devices: dict[str, Device], options: argparse.Namespace) -> list[dict[str, Any]]:
    """Rows of all cases; those that a file has aren't run again."""
    code = code_fingerprint("localize")[:16]
    path: Path | None = options.json
    known = {} if path is None or options.fresh or not path.exists() else {row["name"]: row for row in _read(path)}
    if any(row["code"] != code for row in known.values()):
        sys.exit(f"{path} has rows of other code; begin anew with --fresh")
    if path is not None and not known:
        path.write_text("", encoding="utf-8")
    trial, rows = Trial(_KEPT, devices), []
    for number, case in enumerate(cases):
        row = known.get(case.name)
        if row is None:
            started = time.perf_counter()
            row = {"name": case.name, **dataclasses.asdict(case), "code": code, **_row(trial, case, devices)}
            print(f"{number + 1}/{len(cases)} {case.name}: {_short(row)}, {time.perf_counter() - started:.1f} s",
                  file=sys.stderr)  # fmt: skip
            if path is not None:
                with path.open("a", encoding="utf-8") as stream:
                    stream.write(json.dumps(row) + "\n")
        rows.append(row)
    return rows


def _row(trial: Trial, case: Case, devices: dict[str, Device]) -> dict[str, Any]:
    if case.arithmetic not in devices[case.device].arithmetics:
        return {"status": "missing", "words": f"{case.device} has no {case.arithmetic} here"}
    with tempfile.TemporaryDirectory() as scratch:
        try:
            return trial.run(case, Path(scratch))
        except Exception as error:  # noqa: BLE001 (a row, whatever it is)
            return {"status": "failed", "words": f"{type(error).__name__}: {error}"[:300]}


def _short(row: dict[str, Any]) -> str:
    if row["status"] != "measured":
        return f"{row['status']} {row['words']}"
    return ", ".join(
        f"{row[asked]['verdict']} {row[asked]['arithmetic']}".strip() for asked in ("outputs", "recorded")
    )


def _read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    sys.exit(main())

"""Which known bugs NNSmith's own campaign may have found.

    python -m benchmarks.fuzz.nnsmith_reports FOLDER SYSTEM

The folder is one of reports that NNSmith made by itself, with its own oracle (PyTorch's results, and its tolerances):

    PYTHON benchmarks/generate/nnsmith_side.py WORK model.type=onnx backend.type=onnxruntime fuzz.root=found
        fuzz.time=600 fuzz.seed=9300

where PYTHON has NNSmith and the release of the system (`ort-all@1.20.1`). Its reports are whole networks: nothing is
reduced, and no cause is looked for. So a bug may have been found where a report is of its sort and its network has
all of its operators, whatever else: that's more than were found. What isn't implemented is a gap.
"""

from __future__ import annotations

import argparse
import collections
import json
import re
from collections.abc import Iterator
from pathlib import Path

import onnx

from benchmarks.fuzz.recall import bugs_of

__all__ = ["page"]

_GAP = "NOT_IMPLEMENTED"

_SORTS = {
    "exception": {"exception", "shape", "type"},
    "segfault": {"crash"},
    "inconsistency": {"numbers", "not finite", "shape", "type", "chance"},
}
"""Kinds of bugs, by the symptom that a report names."""


def page(folder: Path, system: str) -> Iterator[str]:
    """What was reported, and a line for each known bug.

    Args:
        folder: With a folder for each report.
        system: With its release.
    """
    every = sorted(path.parent for path in folder.glob("*/meta.json"))
    reports = [report for report in every if _GAP not in _log(report)]
    symptoms = [json.loads((report / "meta.json").read_text())["symptom"] for report in reports]
    operators = [{node.op_type for node in onnx.load(report / "model.onnx").graph.node} for report in reports]
    said = collections.Counter(zip(symptoms, map(_words, reports), strict=True))
    yield f"{len(every)} reports, {len(every) - len(reports)} of them of gaps"
    yield ""
    yield "| symptom | what is said | reports |"
    yield "|---|---|---|"
    for (symptom, words), count in said.most_common():
        yield f"| {symptom} | {words} | {count} |"
    yield ""
    yield "| bug | networks that it may be in |"
    yield "|---|---|"
    for bug in bugs_of([system]):
        fitting = [
            report.name
            for report, symptom, own in zip(reports, symptoms, operators, strict=True)
            if bug.kind in _SORTS.get(symptom, ()) and set(bug.operators) <= own
        ]
        yield f"| {bug.name} | {len(fitting)} |"


def _words(report: Path) -> str:
    """The line that says what went wrong, without numbers and names."""
    said = [line for line in _log(report).splitlines() if re.match(r"[\w.]*(Error|Exception|Fail|mismatch)", line)]
    return re.sub(r"'[^']*'|\d+", "..", said[-1] if said else "").replace("|", "/")[:160]


def _log(report: Path) -> str:
    return (report / "err.log").read_text(encoding="utf-8", errors="replace")


def main() -> None:
    """Print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("system")
    options = parser.parse_args()
    print("\n".join(page(options.folder, options.system)))


if __name__ == "__main__":
    main()

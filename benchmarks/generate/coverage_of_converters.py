"""Lines and branches of Python converters that networks reach: ours, and NNSmith's beside them.

`python -m benchmarks.generate.coverage_of_converters --nnsmith-python PYTHON [--networks 1000]`. Ours keep to what
the converter takes (as `conrepair generate --support` has them), NNSmith's to what it found out itself that can be
exported and run. What is done is kept in `--folder`, and a second run goes on from there.
"""

from __future__ import annotations

import argparse
import collections
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.generate.covering import AT, CONVERTERS, FOUND
from benchmarks.generate.curves import Curve, curves_svg
from benchmarks.generate.nnsmith_process import NNSmith
from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair_lab.campaigns.generating import GenerationRequest, generate
from conrepair_lab.generate.wishes import Wishes

__all__ = ["covered", "curves_of"]

_SUPPORT = {"tflite-onnx-tf2onnx": "tflite"}
"""What ours keep to, where that's not the converter itself."""

_MARKS = (0, 100, 250, 500, 1000)
_PICTURE = Path("docs/pictures/converter-coverage.svg")
_COMMAND = [sys.executable, "-m", "benchmarks.generate.covering"]
_PART = 50
_MOST_DEATHS = 50


def covered(
    converter: str, models: Sequence[Path], folder: Path, marks: Sequence[int] = _MARKS, seconds: float = 60.0
) -> list[dict[str, Any]]:
    """Convert models one after the other, and count.

    Args:
        converter: A key of `covering.CONVERTERS`.
        models: ONNX files.
        folder: Of what is found; what's there already isn't done again.
        marks: Numbers of models behind which lines and branches are counted.
        seconds: For each.

    Returns:
        Counts ("networks", "covered_lines" and so on) and, of each model, "refusal".
    """
    folder.mkdir(parents=True, exist_ok=True)
    without: list[int] = []
    asked = {
        "converter": converter,
        "models": list(map(str, models)),
        "marks": list(marks),
        "seconds": seconds,
        "folder": str(folder),
        "without": without,
    }
    while not any(row.get("networks") == len(models) for row in _rows(folder)):
        (folder / AT).unlink(missing_ok=True)
        (folder / "asked.json").write_text(json.dumps(asked), encoding="utf-8")
        with (folder / "log").open("ab") as log:
            command = [*_COMMAND, str(folder / "asked.json")]
            code = subprocess.run(command, stdout=log, stderr=log, check=False).returncode
        if code == 0:
            break
        if not (folder / AT).is_file() or len(without) == _MOST_DEATHS:
            raise SystemExit(f"{converter} ended with {code}, see {folder / 'log'}")
        without.append(int((folder / AT).read_text(encoding="utf-8")))
    return _rows(folder)


def curves_of(rows: Sequence[dict[str, Any]]) -> tuple[Curve, Curve]:
    """Shares of lines and of branches."""
    counts = {row["networks"]: row for row in rows if "networks" in row}
    return (
        [(number, row["covered_lines"] / row["num_statements"]) for number, row in sorted(counts.items())],
        [(number, row["covered_branches"] / row["num_branches"]) for number, row in sorted(counts.items())],
    )


def _rows(folder: Path) -> list[dict[str, Any]]:
    file = folder / FOUND
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    rows = [json.loads(line) for line in lines]
    return list({row.get("model", row.get("networks")): row for row in rows}.values())  # some were done twice


def _ours(converter: str, count: int, seed: int, folder: Path) -> list[Path]:
    asked = GenerationRequest(
        Wishes(), count + count // 10, seed, support=_SUPPORT.get(converter, converter), workers=1
    )
    with ProgressDisplay() as display:
        generate(asked, folder, display)
    return sorted(folder.glob("*/model.onnx"))[:count]


def _theirs(python: Path, count: int, seed: int, folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    if len(list(folder.glob("*.onnx"))) < count:
        with NNSmith(python) as peer:
            while len(list(folder.glob("*.onnx"))) < count:
                peer.made(10, range(seed, seed + _PART), vulnerable=True, folder=folder)
                seed += _PART
    return sorted(folder.glob("*.onnx"), key=lambda path: int(path.stem))[:count]


def _table(found: dict[str, dict[str, list[dict[str, Any]]]]) -> Iterator[str]:
    yield "| converter | networks | of whom | lines | branches | converted |"
    yield "|---|---|---|---|---|---|"
    for converter, by_whom in found.items():
        for whose, rows in by_whom.items():
            taken = [row["refusal"] is None for row in rows if "refusal" in row]
            for row in (row for row in rows if "networks" in row):
                number = int(row["networks"])
                lines = _share(row["covered_lines"], row["num_statements"])
                branches = _share(row["covered_branches"], row["num_branches"])
                yield f"| {converter} | {number} | {whose} | {lines} | {branches} | {sum(taken[:number])} |"


def _share(some: int, of: int) -> str:
    return f"{some} of {of} ({some / of:.1%})"


def _refusals(rows: Sequence[dict[str, Any]]) -> collections.Counter[str]:
    words = (row["refusal"] for row in rows if row.get("refusal"))
    return collections.Counter(re.sub(r"/\S+|\b[tn]\d+\b|\d+", "…", text)[:150] for text in words)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("converters", nargs="*", default=list(CONVERTERS))
    parser.add_argument("--nnsmith-python", type=Path, required=True, help="of an environment that has NNSmith")
    parser.add_argument("--networks", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=Path("generated/benchmarks/coverage"))
    parser.add_argument("--picture", type=Path, default=_PICTURE)
    arguments = parser.parse_args()
    folder, count = arguments.folder.absolute(), arguments.networks
    marks = [mark for mark in _MARKS if mark <= count]
    theirs = _theirs(arguments.nnsmith_python, count, arguments.seed, folder / "nnsmith")
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for converter in arguments.converters:
        ours = _ours(converter, count, arguments.seed, folder / f"ours-{converter}")
        for whose, models in (("ours", ours), ("NNSmith's", theirs)):
            rows = covered(
                converter, models, folder / f"{converter}-{'ours' if whose == 'ours' else 'nnsmith'}", marks
            )
            found.setdefault(converter, {})[whose] = rows
            print(f"{converter}, {whose}:", curves_of(rows))
            for words, number in _refusals(rows).most_common(12):
                print(f"    {number} {words}", flush=True)
    charts = {name: {whose: curves_of(rows) for whose, rows in by_whom.items()} for name, by_whom in found.items()}
    arguments.picture.write_text(curves_svg("Coverage of converters", charts), encoding="utf-8")
    print("\n".join(_table(found)))


if __name__ == "__main__":
    main()

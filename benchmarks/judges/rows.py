"""Rows of pairs: made in workers, kept in a file."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.common.lanes import run_all
from benchmarks.common.measured import made_by
from benchmarks.common.running import say, some_workers
from benchmarks.judges.cases import DIGITS, Case
from benchmarks.judges.sources import source
from benchmarks.judges.trial import EITHER, FAULTY, RIGHT
from conrepair.ground.runtime.processes.workers import Job, Success

__all__ = ["Rows", "judged", "made", "read_rows", "word"]

Row = Mapping[str, Any]
_TIMEOUT = 300.0
_COMPILED, _TENSORFLOW, _OTHERS = frozenset({"tvm"}), frozenset({"keras", "tflite"}), frozenset[str]()
_RIGHT_WORDS = ("equivalent", "noise", "quantized")


class Rows:
    """A file of rows, which a run continues.

    Attributes:
        known: Rows that are there, by case.
    """

    def __init__(self, path: Path | None, command: str) -> None:
        """Read what's there, and say what adds to it.

        Args:
            path: Of the file; None: nothing is kept.
            command: That makes rows.
        """
        self._path = path
        self.known = {} if path is None or not path.exists() else read_rows(path)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._write({"made": made_by(command)})

    def add(self, row: Row) -> None:
        """Keep a row."""
        self.known[row["case"]] = row
        if self._path is not None:
            self._write(row)

    def _write(self, item: Row) -> None:
        assert self._path is not None
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(item) + "\n")


def read_rows(path: Path) -> dict[str, Row]:
    """Rows of a file, by case."""
    items = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {item["case"]: item for item in items if "case" in item}


def made(cases: Sequence[Case], folder: Path) -> Iterator[Row]:
    """Carry cases out, those that need the same libraries in one worker: TVM's and TensorFlow's don't mix.

    Args:
        cases: Which.
        folder: For files.

    Yields:
        "case" (its name), its parts, "status", and what `benchmarks.judges.trial.run` says.
    """
    started, count = time.perf_counter(), 0
    if any(case.network == DIGITS for case in cases):
        source(DIGITS, cases[0].seed)  # trained once, for which workers may not write
    for needs in (_OTHERS, _COMPILED, _TENSORFLOW):
        jobs = []
        for place, case in enumerate(cases):
            if _needs(case) == needs:
                payload = {"case": dataclasses.asdict(case), "kept": str(folder / "kept")}
                there = folder / f"{'-'.join(sorted(needs))}-{place}"
                jobs.append((case, Job("benchmarks.judges.trial:run", payload, there, needs, _TIMEOUT)))
        with some_workers(1) as workers:
            for case, outcome in run_all(workers, jobs):
                value = (
                    outcome.value if isinstance(outcome, Success) else {"status": _ended(outcome), "seconds": None}
                )
                row = {"case": case.name, **dataclasses.asdict(case), **value}
                count += 1
                say(f"{time.perf_counter() - started:.0f} s, {count}/{len(cases)} {case.name}: {_told(row)}")
                yield row


def judged(rows: Mapping[str, Row]) -> list[Row]:
    """Those that came to verdicts."""
    return [row for row in rows.values() if row["status"] == "judged"]


def word(row: Row, verb: str) -> str:
    """How what a verb says stands to the label.

    Args:
        row: That was judged.
        verb: "compare" or "localize".

    Returns:
        "good", "accused" (a right target), "cleared" (a faulty one), "undecided", "failed", or "open": there's no
        wrong answer.
    """
    verdict, label = row[verb]["verdict"], row["label"]
    if verdict not in {*_RIGHT_WORDS, "faulty", "undecided", "undeployable"}:
        return "failed"
    if label == EITHER:
        return "open"
    if verdict == "undecided":
        return "undecided"
    right = verdict in _RIGHT_WORDS
    if right == (label == RIGHT):
        return "good"
    return "cleared" if label == FAULTY else "accused"


def _needs(case: Case) -> frozenset[str]:
    if case.target.startswith("tvm"):
        return _COMPILED
    return _TENSORFLOW if case.target.startswith(("keras", "tflite")) else _OTHERS


def _ended(outcome: Any) -> str:
    return " ".join(f"ended: {outcome}".split())[:300]


def _told(row: Row) -> str:
    if row["status"] != "judged":
        return str(row["status"])
    return f"{row['label']}; compare {row['compare']['verdict']}, localize {row['localize']['verdict']}"

"""An interrupted run of the localization benchmark goes on where it stopped."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.common.cases import Case
from benchmarks.common.rows import read_rows
from benchmarks.localization import __main__ as benchmark
from benchmarks.localization.rows import Row
from conrepair.ground.runtime.processes.workers import Success

_FAULT = {
    "kind": "parameters",
    "source_layers": ["a"],
    "target_layers": ["b"],
    "introduced_error": 0.5,
    "noise_floor": 1e-6,
    "evidence": ["w"],
}


class Runs:
    """Stands for the workers: says what it was asked for, and stops where it's told to."""

    def __init__(self, stop: int | None = None) -> None:
        self.asked: list[Case] = []
        self.stop = stop

    def __call__(self, cases: Sequence[Case], *_: object, **__: object) -> Iterator[tuple[Case, Any]]:
        for number, case in enumerate(cases):
            if number == self.stop:
                raise KeyboardInterrupt
            self.asked.append(case)
            faults = [_FAULT | {"effect": 0.1, "words": "w"}] * case.count
            value = {"injected": faults, "found": faults, "verdict": "faulty", "seconds": 0.1, "notes": []}
            yield case, Success({"status": "measured", "words": ""} | value, 1.0)


def run(monkeypatch: pytest.MonkeyPatch, runs: Runs, *arguments: str) -> int:
    monkeypatch.setattr(benchmark, "run_cases", runs)
    monkeypatch.setattr(sys, "argv", ["benchmarks.localization", "--only", "perceptron,encoder", *arguments])
    return benchmark.main()


def test_rows_are_kept_and_the_rest_is_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.json"
    first, second, third = Runs(stop=7), Runs(), Runs()
    with pytest.raises(KeyboardInterrupt):
        run(monkeypatch, first, "--quick", "--json", str(path))
    assert run(monkeypatch, second, "--quick", "--json", str(path)) == 0
    assert len(first.asked) == 7
    assert not set(first.asked) & set(second.asked)
    rows = read_rows(Row, path)[1]
    assert [row.case.name for row in rows] == [case.name for case in first.asked + second.asked]
    assert {row.score.first for row in rows if row.score} == {True}
    printed = capsys.readouterr().out
    assert run(monkeypatch, third, "--tables", str(path)) == 0
    assert capsys.readouterr().out == printed


def test_so_many_of_each_model(monkeypatch: pytest.MonkeyPatch) -> None:
    few, more = Runs(), Runs()
    run(monkeypatch, few, "--first", "5")
    run(monkeypatch, more, "--first", "9")
    assert Counter(case.model for case in few.asked) == {"perceptron": 5, "encoder": 5}
    assert [case for case in more.asked if case in few.asked] == few.asked  # those of a smaller part come in a larger
    assert len({case.group for case in more.asked}) > 2  # of all sorts

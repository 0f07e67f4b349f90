"""An interrupted run of the repair benchmark goes on where it stopped."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from benchmark_rows import left, result

from benchmarks.common.cases import Case
from benchmarks.common.rows import read_rows
from benchmarks.repair import __main__ as benchmark
from benchmarks.repair.rows import Row
from conrepair.ground.runtime.processes.workers import Failure, Success


class Runs:
    """Stands for the workers: says what it was asked for, and stops where it's told to."""

    def __init__(self, stop: int | None = None) -> None:
        self.asked: list[str] = []
        self.stop = stop

    def __call__(self, cases: Sequence[Case], *_: object, **__: object) -> Iterator[tuple[Case, Any]]:
        for number, item in enumerate(cases):
            if number == self.stop:
                raise KeyboardInterrupt
            self.asked.append(item.name)
            outcomes = (result(), left())
            value = {"status": "measured", "words": ""} | outcomes[number % 2]
            yield item, Success(value, 1.0) if number else Failure("crash", "SIGSEGV", "gone")


def run(monkeypatch: pytest.MonkeyPatch, runs: Runs, *arguments: str) -> int:
    monkeypatch.setattr(benchmark, "run_cases", runs)
    fixed = ("--only", "perceptron", "--groups", "native", "--quick")
    monkeypatch.setattr(sys, "argv", ["benchmarks.repair", *fixed, *arguments])
    return benchmark.main()


def test_rows_are_kept_and_the_rest_is_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.json"
    first, second = Runs(stop=7), Runs()
    with pytest.raises(KeyboardInterrupt):
        run(monkeypatch, first, "--json", str(path))
    assert len(read_rows(Row, path)[1]) == len(first.asked) == 7  # also those since the last writing
    assert run(monkeypatch, second, "--json", str(path)) == 1  # a repair failed
    assert second.asked
    assert not set(first.asked) & set(second.asked)
    rows = read_rows(Row, path)[1]
    assert [row.case.name for row in rows] == first.asked + second.asked
    printed = capsys.readouterr().out
    third = Runs()
    run(monkeypatch, third, "--json", str(path))
    assert not third.asked
    assert capsys.readouterr().out == printed  # rows that were read back count as before


def test_tables_need_no_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.json"
    run(monkeypatch, Runs(), "--json", str(path))
    printed = capsys.readouterr().out
    assert run(monkeypatch, Runs(stop=0), "--tables", str(path)) == 0
    assert capsys.readouterr().out == printed


def test_rows_of_other_code_are_not_mixed_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    run(monkeypatch, Runs(), "--json", str(path))
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(content | {"code": "another"}), encoding="utf-8")
    with pytest.raises(SystemExit, match="--fresh"):
        run(monkeypatch, Runs(), "--json", str(path))
    again = Runs()
    run(monkeypatch, again, "--json", str(path), "--fresh")
    assert len(read_rows(Row, path)[1]) == len(again.asked) > 0

from __future__ import annotations

import itertools
import os
import time
from pathlib import Path

import pytest

from benchmarks.mutants.by_hand import by_hand
from benchmarks.mutants.copying import mutated
from benchmarks.mutants.drawing import drawn
from benchmarks.mutants.judging import MODULES
from benchmarks.mutants.mutant import Mutant, mutant_of
from benchmarks.mutants.processes import forked
from benchmarks.mutants.reaching import Reached
from benchmarks.mutants.rows import Fate, Row, explanations, read_rows, table, unexplained, write_rows

ROOT = Path(__file__).parents[2]
SOURCE = '''"""A file."""
from __future__ import annotations

_BOUND = 0.5


def judge(value: int | None) -> str:
    if value is None or value < _BOUND:
        return f"{value or 2} is too small"
    return "right"
'''
ONE = mutant_of("a.py", "some", SOURCE, SOURCE.replace("value <", "value <="))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "conrepair"
    folder.mkdir()
    for name in ("a.py", "b.py"):
        (folder / name).write_text(SOURCE)
    return tmp_path


def test_what_is_drawn_does_something_else_and_is_the_same_each_time(root: Path) -> None:
    files = ["conrepair/a.py", "conrepair/b.py"]
    mutants = list(drawn(root, files, 1))
    assert mutants == list(drawn(root, files, 1))
    assert {mutant.line for mutant in mutants} == {4, 8}, "no annotation, and no words"
    assert [mutant.file for mutant in mutants[:2]] in (files, files[::-1]), "in turns"
    assert len({(mutant.file, mutant.line, mutant.after) for mutant in mutants}) == len(mutants)


def test_a_file_is_as_it_was_when_its_mutant_is_gone(root: Path) -> None:
    mutant = next(drawn(root, ["conrepair/a.py"], 1))
    with mutated(root, mutant):
        assert mutant.after in (root / mutant.file).read_text()
    assert (root / mutant.file).read_text() == SOURCE


def test_which_tests_reach_a_mutant(root: Path) -> None:
    seconds = {"tests/test_b.py": {"long": 5.0, "short": 1.0}, "tests/test_a.py": {"own": 20.0}}
    lines = {
        "tests/test_b.py": {"conrepair/a.py": {"8": ["long", "short"]}},
        "tests/test_a.py": {"conrepair/a.py": {"8": ["all"]}},
    }
    known = Reached(root, seconds, lines)
    inside, constant, elsewhere = (Mutant("conrepair/a.py", line, "some", "", "", "") for line in (8, 4, 10))
    wanted = {"tests/test_a.py": ["own"], "tests/test_b.py": ["short", "long"]}
    assert known.tests(inside, 100.0) == (wanted, 26.0)
    assert known.tests(constant, 22.0) == ({**wanted, "tests/test_b.py": ["short"]}, 21.0), "where it's used"
    assert known.tests(elsewhere, 100.0) == ({}, 0.0)
    (root / "conrepair" / "a.py").write_text("class A:\n    field: int = 3\n\n\ndef f(a):\n\n\n    return a.field\n")
    assert Reached(root, seconds, lines).tests(Mutant("conrepair/a.py", 2, "some", "", "", ""), 100.0)[0] == wanted


def test_rows_are_kept_and_counted(tmp_path: Path) -> None:
    rows = [
        Row(ONE, Fate.SURVIVED, "", 1.0),
        Row(Mutant("a.py", 1, "some", "x", "y", ""), Fate.CAUGHT, "a test", 1.0),
        Row(Mutant("b.py", 1, "by hand", "x", "z", ""), Fate.UNREACHED, "", 1.0),
    ]
    write_rows(tmp_path / "rows.json", {"seed": 1}, rows)
    assert read_rows(tmp_path / "rows.json") == ({"seed": 1}, rows)
    reasons = {ONE.key: "both are right"}
    assert "1 of 2 (50.0%) are caught, 1 of 1 (100.0%) of those that aren't explained." in table(rows, reasons)
    assert "both are right" in table(rows, reasons)
    assert unexplained(rows, reasons) == [rows[2]]


def test_mutants_by_hand_and_explanations_are_of_the_files_as_they_are() -> None:
    assert {mutant.file for mutant in by_hand(ROOT)} <= set(MODULES)
    texts = {file: {line.strip() for line in (ROOT / file).read_text().splitlines()} for file in MODULES}
    for file, before, _ in explanations():
        assert set(before.splitlines()) <= texts[file], before


def test_what_is_drawn_of_the_files_as_they_are() -> None:
    found = list(itertools.islice(drawn(ROOT, MODULES[:3], 1), 9))
    assert {mutant.file for mutant in found} == set(MODULES[:3])


def answered(words: str) -> dict[str, str]:
    return {"failed": words}


def asleep() -> dict[str, str]:
    time.sleep(60)
    return {"failed": "nothing"}


def test_what_a_process_of_its_own_says(tmp_path: Path) -> None:
    assert forked(tmp_path, 60, answered, "a test") == {"failed": "a test"}
    assert forked(tmp_path, 0.5, asleep) is None, "after a time-out"
    told = forked(tmp_path, 60, os._exit, 3)
    assert told == {"failed": "the process ended with 3"}

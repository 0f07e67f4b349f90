"""Which quick tests reach a line, and how long they take: measured once, again for what was changed."""

from __future__ import annotations

import ast
import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import coverage
import pytest

from benchmarks.mutants.mutant import Mutant
from benchmarks.mutants.processes import OUTPUT, forked

__all__ = ["Reached", "reached"]

_PACKAGE = "conrepair"
_TIMEOUT = 1200.0
_OF_FILE = "all"


class _Contexts:
    """Tells coverage.py which test runs; what prepares a test may be for all of its file."""

    def __init__(self, measured: coverage.Coverage) -> None:
        self._measured, self._started = measured, 0.0
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        self._measured.switch_context(_OF_FILE)
        self._started = time.perf_counter()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        self._measured.switch_context(item.nodeid)
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        self.seconds[item.nodeid] = time.perf_counter() - self._started
        self._measured.switch_context("")
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)


@dataclass(frozen=True)
class Reached:
    """What was measured.

    Attributes:
        root: Of the repository.
        seconds: By test, by test file; those that fail anyway aren't there.
        lines: By test file, by file, by line: the tests that reach it.
    """

    root: Path
    seconds: Mapping[str, Mapping[str, float]]
    lines: Mapping[str, Mapping[str, Mapping[str, Sequence[str]]]]

    def tests(self, mutant: Mutant, most: float) -> tuple[dict[str, list[str]], float]:
        """The tests that reach a mutant, by file: those of its own first, then the quick ones.

        Args:
            mutant: Which.
            most: Seconds of tests; the first one is taken in any case.

        Returns:
            Also the seconds that they take.
        """
        places = self._places(mutant)
        found = {file: self._of(file, places) for file in self.seconds}
        own = f"test_{Path(mutant.file).stem}.py"
        taken: dict[str, list[str]] = {}
        total = 0.0
        quick = sorted(filter(found.get, found), key=lambda file: self._sum(file, found))
        for file in sorted(quick, key=lambda file: Path(file).name != own):
            for test in sorted(found[file], key=self.seconds[file].__getitem__):
                if total and total + self.seconds[file][test] > most:
                    break
                taken.setdefault(file, []).append(test)
                total += self.seconds[file][test]
        return taken, total

    def _of(self, file: str, places: Mapping[str, set[int]]) -> set[str]:
        tests: set[str] = set()
        for name, wanted in places.items():
            known = self.lines[file].get(name, {})
            tests.update(test for line in wanted for test in known.get(str(line), ()))
        return (set(self.seconds[file]) if _OF_FILE in tests else tests) & self.seconds[file].keys()

    def _sum(self, file: str, found: Mapping[str, set[str]]) -> float:
        return sum(self.seconds[file][test] for test in found[file])

    def _places(self, mutant: Mutant) -> dict[str, set[int]]:
        """Lines whose tests see a mutant; of a constant, or a field, those that use its name."""
        tree = ast.parse((self.root / mutant.file).read_text(encoding="utf-8"))
        around = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.stmt) and node.lineno <= mutant.line <= (node.end_lineno or 0)
        ]
        inner, *outer = reversed(around)
        whole = outer[0] if outer and isinstance(outer[0], ast.ClassDef) else inner
        if isinstance(inner, ast.Assign | ast.AnnAssign) and (not outer or whole is not inner):
            name = next(node.id for node in ast.walk(inner) if isinstance(node, ast.Name))
            return self._uses(re.compile(rf"\b{name}\b"))
        end = whole.end_lineno or 0
        if not isinstance(whole, ast.FunctionDef | ast.ClassDef) and hasattr(whole, "body"):
            end = max(whole.body[0].lineno - 1, whole.lineno)  # the head of a loop or a condition
        return {mutant.file: set(range(whole.lineno, end + 1))}

    def _uses(self, name: re.Pattern[str]) -> dict[str, set[int]]:
        return {file: found for file, lines in self._texts.items() if (found := _lines_with(name, lines))}

    @cached_property
    def _texts(self) -> dict[str, list[str]]:
        return {
            str(path.relative_to(self.root)): path.read_text(encoding="utf-8").splitlines()
            for path in sorted((self.root / _PACKAGE).rglob("*.py"))
        }


def reached(copy: Path, root: Path, folders: Sequence[str], kept: Path, say: Callable[[str], None]) -> Reached:
    """Measure, where that isn't known.

    Args:
        copy: Of the repository, where tests are run.
        root: Of the repository.
        folders: Of the tests.
        kept: A file that keeps what's known.
        say: Told what goes on.
    """
    known: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    code = _digest(sorted((copy / _PACKAGE).rglob("*.py")))
    files = sorted(path for folder in folders for path in (copy / folder).rglob("test_*.py"))
    rows: dict[str, Any] = {}
    for place, path in enumerate(files, 1):
        file = str(path.relative_to(copy))
        digest = code + _digest([path])
        rows[file] = known[file] if known.get(file, {}).get("digest") == digest else None
        if rows[file] is None:
            started = time.perf_counter()
            found = forked(copy, _TIMEOUT, _measured, file)
            if found is None or "lines" not in found:
                raise RuntimeError(f"{file} can't be measured: {found}\n{(copy / OUTPUT).read_text()[-2000:]}")
            rows[file] = {"digest": digest, **found}
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps({**known, **{name: row for name, row in rows.items() if row}}))
            say(f"{place}/{len(files)} {file}: {len(found['seconds'])} tests, {time.perf_counter() - started:.0f} s")
        if rows[file]["failed"]:
            say(f"these fail as it is, and notice nothing: {rows[file]['failed']}")
    return Reached(
        root,
        {
            file: {test: time for test, time in row["seconds"].items() if test not in row["failed"]}
            for file, row in rows.items()
        },
        {file: _named(row) for file, row in rows.items()},
    )


def _measured(file: str) -> dict[str, Any]:
    """Run one file's tests, in a process of their own."""
    measured = coverage.Coverage(data_file=None, include=[f"{Path.cwd()}/{_PACKAGE}/*"], messages=False)
    contexts = _Contexts(measured)
    measured.start()
    pytest.main(["-q", "-m", "not slow", "-p", "no:cacheprovider", file], plugins=[contexts])
    measured.stop()
    data = measured.get_data()
    tests = list(contexts.seconds)
    place = {test: index for index, test in enumerate([*tests, _OF_FILE])}
    lines: dict[str, dict[int, list[int]]] = {}
    for name in data.measured_files():
        known = {
            line: [place[test] for test in found if test] for line, found in data.contexts_by_lineno(name).items()
        }
        lines[str(Path(name).relative_to(Path.cwd()))] = {line: found for line, found in known.items() if found}
    return {"seconds": contexts.seconds, "failed": contexts.failed, "lines": lines}


def _named(row: Mapping[str, Any]) -> dict[str, dict[str, list[str]]]:
    """The tests that reach lines, which are kept by their place."""
    tests = [*row["seconds"], _OF_FILE]
    return {
        file: {line: [tests[place] for place in places] for line, places in lines.items()}
        for file, lines in row["lines"].items()
    }


def _lines_with(name: re.Pattern[str], lines: Sequence[str]) -> set[int]:
    return {number for number, line in enumerate(lines, 1) if name.search(line)}


def _digest(paths: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()

"""Keeps what each test costs in processor seconds, of this process and of those that it started and has waited for.

A clock on the wall would measure what else the machine does. No test fails for it: what isn't quick is listed. What a
file costs, with what its fixtures make, decides when a worker gets it (`dealing.py`).
"""

from __future__ import annotations

import collections
import importlib.machinery
import json
import resource
import time
from collections.abc import Iterator, Mapping
from types import ModuleType

import pytest

LIMIT = 5.0
"""Processor seconds above which a test that isn't marked `slow` is listed."""

TESTS, FILES = "cpu.json", "files.json"
"""Below `durations` in pytest's cache folder: seconds of each test's call, and of each file with its fixtures."""

_ADVICE = (
    "Make them quicker (a smaller network, fewer samples, a file made once for the module), or mark them `slow` if a "
    "quicker test shows the same behaviour."
)
_SECONDS, _LISTED = "cpu_seconds", "not_quick"


class _Imports:
    """Seconds that this process has spent executing modules since `watch`: who's first to need a framework pays."""

    def __init__(self) -> None:
        self.seconds, self._depth = 0.0, 0

    def watch(self) -> None:
        loader = importlib.machinery.SourceFileLoader
        execute = loader.exec_module

        def timed(own: importlib.machinery.SourceFileLoader, module: ModuleType) -> None:
            started = time.process_time()
            self._depth += 1
            try:
                execute(own, module)
            finally:
                self._depth -= 1
                if not self._depth:  # the outermost has what it imports within its time
                    self.seconds += time.process_time() - started

        loader.exec_module = timed  # type: ignore[method-assign]


def _seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


class Durations:
    """A plugin that writes `TESTS` and `FILES`, longest first."""

    def __init__(self, config: pytest.Config, limit: float = LIMIT) -> None:
        self._config, self._limit = config, limit
        self._of_tests: dict[str, float] = {}
        self._of_files: collections.Counter[str] = collections.Counter()
        self._not_quick: set[str] = set()
        self._imports = _Imports()
        self._imports.watch()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        return (yield from self._measured(item))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        return (yield from self._measured(item))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        return (yield from self._measured(item))

    def _measured(self, item: pytest.Item) -> Iterator[None]:
        """Add what a phase of a test costs to what its report says."""
        imports, started = self._imports.seconds, _seconds()
        try:
            yield
        finally:
            seconds = _seconds() - started - (self._imports.seconds - imports)
            item.user_properties.append((_SECONDS, round(seconds, 3)))
            own = item.get_closest_marker("cpu_seconds")
            limit = self._limit if own is None else max(self._limit, own.args[0])
            item.user_properties.append((_LISTED, seconds > limit and item.get_closest_marker("slow") is None))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        kept = dict(report.user_properties)  # of the last phase, if a name is there twice
        if _SECONDS not in kept:
            return
        self._of_files[report.nodeid.split("::")[0]] += float(str(kept[_SECONDS]))
        if report.when == "call":
            self._of_tests[report.nodeid] = float(str(kept[_SECONDS]))
            if kept[_LISTED]:
                self._not_quick.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        of_several = hasattr(self._config, "workerinput")
        if of_several or not self._of_tests or not hasattr(self._config, "cache"):  # `-p no:cacheprovider`
            return
        for name, seconds in ((TESTS, self._of_tests), (FILES, self._of_files)):
            path = self._config.cache.mkdir("durations") / name
            path.write_text(json.dumps(_longest_first(seconds), indent=1) + "\n", encoding="utf-8")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._not_quick:
            return
        terminalreporter.section("not quick (processor seconds, without imports)")
        for name, seconds in _longest_first(self._of_tests).items():
            if name in self._not_quick:
                terminalreporter.line(f"{seconds:6.1f} {name}")
        terminalreporter.line(_ADVICE)


def _longest_first(seconds: Mapping[str, float]) -> dict[str, float]:
    return {name: round(seconds[name], 3) for name in sorted(seconds, key=lambda name: -seconds[name])}

"""Keeps what each test costs in processor seconds, of this process and of those that it started and has waited for.

A clock on the wall would measure what else the machine does. A case of `tests/` that takes more than `LIMIT` fails:
what can't be quicker belongs into `tests_real/`. What a file costs, with what its fixtures make, decides when a
worker gets it (`dealing.py`).
"""

from __future__ import annotations

import collections
import importlib.machinery
import json
import os
import resource
import time
from collections.abc import Iterator, Mapping
from types import ModuleType

import pytest

LIMIT = float(os.environ.get("CONREPAIR_TEST_SECONDS", "5"))
"""Processor seconds above which a case fails, without what it imports first; "inf" where lines are watched."""

UNBOUNDED = ("tests_real/", "tests_found/")
"""Folders of tests that need what takes longer: compilers, clusters, browsers, campaigns, whole repairs."""

TESTS, FILES = "cpu.json", "files.json"
"""Below `durations` in pytest's cache folder: seconds of each test's call in the last run, and of each file with its
fixtures when it was run last."""

_ADVICE = (
    "Make it quicker (a smaller network, fewer samples, a file made once for the module), mark it `slow` if a "
    "quicker case shows the same behaviour, or move it to tests_real/ if nothing smaller shows what it does."
)
_SECONDS = "cpu_seconds"


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
        self._imports = _Imports()
        self._imports.watch()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        return (yield from self._measured(item))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        result = yield from self._measured(item)
        seconds = dict(item.user_properties)[_SECONDS]
        if isinstance(seconds, float) and seconds > self._limit and _bounded(item):
            pytest.fail(
                f"{seconds:.1f} processor seconds; a case of tests/ has {self._limit:g}. {_ADVICE}", pytrace=False
            )
        return result

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

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        kept = dict(report.user_properties)  # of the last phase, if a name is there twice
        if _SECONDS not in kept:
            return
        self._of_files[report.nodeid.split("::")[0]] += float(str(kept[_SECONDS]))
        if report.when == "call":
            self._of_tests[report.nodeid] = float(str(kept[_SECONDS]))

    def pytest_sessionfinish(self) -> None:
        of_several = hasattr(self._config, "workerinput")
        if of_several or not self._of_tests or not hasattr(self._config, "cache"):  # `-p no:cacheprovider`
            return
        folder = self._config.cache.mkdir("durations")
        before = json.loads((folder / FILES).read_text(encoding="utf-8")) if (folder / FILES).exists() else {}
        for name, seconds in ((TESTS, self._of_tests), (FILES, {**before, **self._of_files})):
            (folder / name).write_text(json.dumps(_longest_first(seconds), indent=1) + "\n", encoding="utf-8")


def _bounded(item: pytest.Item) -> bool:
    """Whether a case has to be quick."""
    return not item.nodeid.startswith(UNBOUNDED) and item.get_closest_marker("slow") is None


def _longest_first(seconds: Mapping[str, float]) -> dict[str, float]:
    return {name: round(seconds[name], 3) for name in sorted(seconds, key=lambda name: -seconds[name])}

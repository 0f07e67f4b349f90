"""Keeps what each test costs in processor seconds, of this process and of those that it started and has waited for.

A clock on the wall would measure what else the machine does. No test fails for it: what isn't quick is listed.
"""

from __future__ import annotations

import importlib.machinery
import json
import resource
import time
from collections.abc import Iterator
from types import ModuleType

import pytest

LIMIT = 5.0
"""Processor seconds above which a test that isn't marked `slow` is listed."""

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
    """A plugin: `durations/cpu.json` in pytest's cache folder has the seconds of each test's call, longest first."""

    def __init__(self, config: pytest.Config, limit: float = LIMIT) -> None:
        self._config, self._limit = config, limit
        self._seconds: dict[str, float] = {}
        self._not_quick: set[str] = set()
        self._imports = _Imports()
        self._imports.watch()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
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
        kept = dict(report.user_properties)
        if report.when == "call" and _SECONDS in kept:
            self._seconds[report.nodeid] = float(str(kept[_SECONDS]))
            if kept[_LISTED]:
                self._not_quick.add(report.nodeid)

    def _longest_first(self) -> dict[str, float]:
        return dict(sorted(self._seconds.items(), key=lambda item: -item[1]))

    def pytest_sessionfinish(self) -> None:
        of_several = hasattr(self._config, "workerinput")
        if of_several or not self._seconds or not hasattr(self._config, "cache"):  # `-p no:cacheprovider`
            return
        path = self._config.cache.mkdir("durations") / "cpu.json"
        path.write_text(json.dumps(self._longest_first(), indent=1) + "\n", encoding="utf-8")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._not_quick:
            return
        terminalreporter.section("not quick (processor seconds, without imports)")
        for name, seconds in self._longest_first().items():
            if name in self._not_quick:
                terminalreporter.line(f"{seconds:6.1f} {name}")
        terminalreporter.line(_ADVICE)

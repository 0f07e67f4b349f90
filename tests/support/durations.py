"""Keeps what each test costs in processor seconds, of this process and of those that it started and has waited for.

A clock on the wall would measure what else the machine does. A test that isn't marked `slow` fails above a limit.
"""

from __future__ import annotations

import importlib.machinery
import json
import os
import resource
import time
from collections.abc import Iterator
from types import ModuleType

import pytest

LIMIT = "CONREPAIR_TEST_SECONDS"
"""The environment variable with the limit of a quick test, in processor seconds of the usual machine; 0 for none."""

_NAME = "cpu_seconds"
_USUAL = 0.1
"""What `_yardstick` takes on the usual machine."""
_ROOM = 2.0
"""So much more than the limit makes a test fail: beside others, the same test measures half as much again."""


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


def _yardstick() -> float:
    """Seconds that a fixed piece of work takes now."""
    started, total = time.process_time(), 0
    for number in range(4_000_000):
        total += number % 7
    return time.process_time() - started


class Durations:
    """A plugin: `durations/cpu.json` in pytest's cache folder has the seconds of each test's call, longest first."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._seconds: dict[str, float] = {}
        self._limit = float(os.environ.get(LIMIT, "5"))
        self._imports = _Imports()
        self._imports.watch()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        imports, started = self._imports.seconds, _seconds()
        try:
            yield
        finally:
            seconds = _seconds() - started - (self._imports.seconds - imports)
            item.user_properties.append((_NAME, round(seconds, 3)))
        own = item.get_closest_marker("cpu_seconds")
        limit = _ROOM * (self._limit if own is None else max(self._limit, own.args[0]))
        if item.get_closest_marker("slow") is None and self._limit and limit < seconds:
            self._judge(seconds, limit)

    @staticmethod
    def _judge(seconds: float, limit: float) -> None:
        """Fail a quick test of so many seconds, unless the machine is that much slower than usual just now."""
        slower = max(1.0, _yardstick() / _USUAL)
        if seconds > limit * slower:
            pytest.fail(
                f"This quick test took {seconds:.1f} processor seconds (without imports); {limit * slower:.1f} "
                f"are allowed. Make it quicker (a smaller network, fewer samples, a file made once for the module), "
                f"or mark it `slow` if a quicker test shows the same behaviour; {LIMIT} sets the limit.",
                pytrace=False,
            )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        seconds = dict(report.user_properties).get(_NAME)
        if report.when == "call" and seconds is not None:
            self._seconds[report.nodeid] = float(str(seconds))

    def pytest_sessionfinish(self) -> None:
        of_several = hasattr(self._config, "workerinput")
        if of_several or not self._seconds or not hasattr(self._config, "cache"):  # `-p no:cacheprovider`
            return
        ordered = dict(sorted(self._seconds.items(), key=lambda item: -item[1]))
        path = self._config.cache.mkdir("durations") / "cpu.json"
        path.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")

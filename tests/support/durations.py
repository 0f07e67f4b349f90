"""Keeps what each test costs in processor seconds, of this process and of those that it started and has waited for.

A clock on the wall would measure what else the machine does.
"""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Iterator

import pytest

_NAME = "cpu_seconds"


def _seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


class Durations:
    """A plugin: `durations/cpu.json` in pytest's cache folder has the seconds of each test's call, longest first."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        started = _seconds()
        try:
            return (yield)
        finally:
            item.user_properties.append((_NAME, round(_seconds() - started, 3)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        seconds = dict(report.user_properties).get(_NAME)
        if report.when == "call" and seconds is not None:
            self._seconds[report.nodeid] = float(str(seconds))

    def pytest_sessionfinish(self) -> None:
        if hasattr(self._config, "workerinput") or not self._seconds:  # one of several processes
            return
        ordered = dict(sorted(self._seconds.items(), key=lambda item: -item[1]))
        path = self._config.cache.mkdir("durations") / "cpu.json"
        path.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")

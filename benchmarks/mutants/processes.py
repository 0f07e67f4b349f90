"""Run tests in a process that is forked from this one, which has imported the frameworks and nothing of conrepair."""

from __future__ import annotations

import gc
import importlib
import json
import multiprocessing
import os
import signal
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

__all__ = ["OUTPUT", "forked", "tests_in", "warmed"]

OUTPUT = "forked.txt"
"""What tests print, in the copy."""

_ANSWER = "forked.json"


class Watch:
    """Notes the first test that fails."""

    def __init__(self) -> None:
        """None has."""
        self.failed = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """See pytest."""
        self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """See pytest."""
        self._note(report)

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid


def warmed(libraries: Sequence[str]) -> None:
    """Import libraries, for all processes that are forked.

    Args:
        libraries: Names of modules.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for library in libraries:
            importlib.import_module(library)
    gc.collect()
    gc.freeze()


def forked(root: Path, seconds: float, work: Callable[..., dict[str, Any]], *args: object) -> dict[str, Any] | None:
    """What some work in a process of its own says; None after a time-out.

    Args:
        root: The working folder there, which Python imports from.
        seconds: After which the process and its children are killed.
        work: Called there.
        args: Of that.
    """
    answer = root / _ANSWER
    answer.unlink(missing_ok=True)
    process = multiprocessing.get_context("fork").Process(target=_work, args=(root, answer, work, args))
    process.start()
    try:
        process.join(seconds)
        ended = process.exitcode is not None
    finally:
        if process.pid is not None and process.exitcode is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.join()
    if not ended:
        return None
    if not answer.exists():
        return {"failed": f"the process ended with {process.exitcode}"}
    told: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    return told


def tests_in(groups: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Run tests, file by file, until one fails.

    Args:
        groups: Ids of tests by their files.
    """
    for file, tests in groups.items():
        watch = Watch()
        code = pytest.main(["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", *tests], plugins=[watch])
        if watch.failed:
            return {"failed": watch.failed}
        if code != pytest.ExitCode.OK:
            return {"failed": "", "broken": f"pytest ends with {code!r} in {file}, and no test fails"}
    return {"failed": ""}


def _work(root: Path, answer: Path, work: Callable[..., dict[str, Any]], args: tuple[object, ...]) -> None:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.chdir(root)
    sys.path.insert(0, str(root))
    os.environ |= {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1", "CONREPAIR_TEST_SECONDS": "inf"}
    sys.dont_write_bytecode = True
    output = os.open(root / OUTPUT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(output, stream)
    for name in [name for name in sys.modules if name.partition(".")[0] == "benchmarks"]:
        del sys.modules[name]  # tests find the copy's
    told = work(*args)
    answer.write_text(json.dumps(told), encoding="utf-8")
    os._exit(0)  # threads of frameworks don't keep it

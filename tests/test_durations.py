"""A quick test that isn't quick fails; what it imports first isn't its own cost."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import durations

_CONFTEST = """
from durations import Durations

def pytest_configure(config):
    config.addinivalue_line("markers", "slow: long")
    config.addinivalue_line("markers", "cpu_seconds(limit): longer")
    config.pluginmanager.register(Durations(config))
"""

_BURN = """
import time
started = time.process_time()
while time.process_time() - started < {}:
    pass
"""

_TESTS = """
import subprocess, sys
import pytest

def test_quick(): pass

def test_long(): exec(open("burn.py").read(), {})

def test_that_waits_for_another_process(): subprocess.run([sys.executable, "burn.py"], check=True)

@pytest.mark.slow
def test_marked(): exec(open("burn.py").read(), {})

@pytest.mark.cpu_seconds(60)
def test_that_may(): exec(open("burn.py").read(), {})

def test_that_imports(): import burn

def test_wrong_and_long():
    exec(open("burn.py").read(), {})
    assert False, "wrong"
"""


def outcomes(folder: Path, limit: str) -> tuple[dict[str, str], str]:
    (folder / "conftest.py").write_text(_CONFTEST)
    (folder / "burn.py").write_text(_BURN.format(0.3))
    (folder / "test_it.py").write_text(_TESTS)
    path = os.pathsep.join([str(Path(durations.__file__).parent), str(folder)])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-rN", "test_it.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, durations.LIMIT: limit, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    return dict(re.findall(r"::(\w+) (PASSED|FAILED|ERROR)", done.stdout)), done.stdout


def test_who_is_above_the_limit_fails_and_says_so(tmp_path: Path) -> None:
    found, said = outcomes(tmp_path, "0.05")
    assert found == {
        "test_quick": "PASSED",
        "test_long": "FAILED",
        "test_that_waits_for_another_process": "FAILED",
        "test_marked": "PASSED",
        "test_that_may": "PASSED",
        "test_that_imports": "PASSED",
        "test_wrong_and_long": "FAILED",
    }
    assert said.count("(without imports)") == 2, said
    assert "mark it `slow`" in said
    assert "AssertionError: wrong" in said, "what's wrong is said, not that it was long"


def test_no_limit(tmp_path: Path) -> None:
    found, _ = outcomes(tmp_path, "0")
    assert {name for name, outcome in found.items() if outcome == "FAILED"} == {"test_wrong_and_long"}

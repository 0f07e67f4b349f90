"""A quick test that isn't quick is listed and doesn't fail; what it imports first isn't its own cost."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import durations
import pytest

_CONFTEST = """
from durations import Durations

def pytest_configure(config):
    config.addinivalue_line("markers", "slow: long")
    config.addinivalue_line("markers", "cpu_seconds(limit): longer")
    config.pluginmanager.register(Durations(config, 0.05))
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

@pytest.fixture(scope="module")
def made(): exec(open("burn.py").read(), {})

def test_quick(made): pass

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


@pytest.mark.parametrize("several", [(), ("-n", "1")], ids=["one process", "workers"])
def test_who_is_above_the_limit_is_listed_and_does_not_fail(tmp_path: Path, several: tuple[str, ...]) -> None:
    (tmp_path / "conftest.py").write_text(_CONFTEST)
    (tmp_path / "burn.py").write_text(_BURN.format(0.3))
    (tmp_path / "test_it.py").write_text(_TESTS)
    path = os.pathsep.join([str(Path(durations.__file__).parent), str(tmp_path)])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-rN", "-p", "xdist", *several, "test_it.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path, "PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    failed = re.findall(r"FAILED.*::(\w+)|::(\w+) FAILED", done.stdout)
    assert {name for pair in failed for name in pair if name} == {"test_wrong_and_long"}, done.stdout
    assert "AssertionError: wrong" in done.stdout
    listed = re.findall(r"^ +([\d.]+) test_it.py::(\w+)$", done.stdout, re.MULTILINE)
    assert sorted(name for _, name in listed) == [
        "test_long",
        "test_that_waits_for_another_process",
        "test_wrong_and_long",
    ]
    assert all(float(seconds) >= 0.3 for seconds, _ in listed)
    assert "mark them `slow`" in done.stdout
    kept = json.loads((tmp_path / ".pytest_cache/d/durations/cpu.json").read_text())
    assert len(kept) == 7
    assert list(kept.values()) == sorted(kept.values(), reverse=True)
    (seconds,) = json.loads((tmp_path / ".pytest_cache/d/durations/files.json").read_text()).values()
    assert seconds >= sum(kept.values()) + 0.25, "what fixtures make is in it"

"""A case that isn't quick fails, but where that's its folder's sense; what it imports first isn't its own cost."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import durations
import pytest

_KEPT = ("cpu", "files")

_CONFTEST = """
from durations import Durations

def pytest_configure(config):
    config.addinivalue_line("markers", "slow: long")
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

def test_that_imports(): import burn

def test_wrong_and_long():
    exec(open("burn.py").read(), {})
    assert False, "wrong"
"""


@pytest.mark.parametrize("several", [(), ("-n", "1")], ids=["one process", "workers"])
def test_who_is_above_the_limit_fails(tmp_path: Path, several: tuple[str, ...]) -> None:
    for folder in ("tests", "tests_real"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "test_it.py").write_text(_TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")
    (tmp_path / "conftest.py").write_text(_CONFTEST)
    (tmp_path / "burn.py").write_text(_BURN.format(0.3))
    done = _run(tmp_path, "-p", "xdist", *several)
    failed = re.findall(r"FAILED.*? (\w+/test_it.py::\w+)|(\w+/test_it.py::\w+) FAILED", done.stdout)
    assert sorted(name for pair in failed for name in pair if name) == [
        "tests/test_it.py::test_long",
        "tests/test_it.py::test_that_waits_for_another_process",
        "tests/test_it.py::test_wrong_and_long",
        "tests_real/test_it.py::test_wrong_and_long",
    ], done.stdout
    assert done.stdout.count("AssertionError: wrong") == 2, "what is wrong is told"
    told = r"^([\d.]+) processor seconds; a case of tests/ has 0.05. Make it quicker"
    took = re.findall(told, done.stdout, re.MULTILINE)
    assert len(took) == 2, done.stdout
    assert all(float(seconds) >= 0.3 for seconds in took)
    kept = json.loads((tmp_path / ".pytest_cache/d/durations/cpu.json").read_text())
    assert len(kept) == 12
    assert list(kept.values()) == sorted(kept.values(), reverse=True)
    files = json.loads((tmp_path / ".pytest_cache/d/durations/files.json").read_text())
    assert sorted(files) == ["tests/test_it.py", "tests_real/test_it.py"]
    assert sum(files.values()) >= sum(kept.values()) + 0.5, "what fixtures make is in it"


def test_what_other_files_cost_stays_known(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(_CONFTEST)
    for name in ("one", "two"):
        (tmp_path / f"test_{name}.py").write_text("def test_quick(): pass\n")
        assert _run(tmp_path, f"test_{name}.py").returncode == 0
    kept = {
        name: set(json.loads((tmp_path / f".pytest_cache/d/durations/{name}.json").read_text())) for name in _KEPT
    }
    assert kept == {"cpu": {"test_two.py::test_quick"}, "files": {"test_one.py", "test_two.py"}}


def _run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(Path(durations.__file__).parent), str(folder)])
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-rN", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

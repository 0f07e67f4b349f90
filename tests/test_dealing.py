"""Workers get files of tests whole, first those whose costs nobody knows, then those that cost most."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import dealing
import pytest

_ROOT = Path(__file__).parents[1]

_STALE = 0.05  # of the files: those that came or went since they were measured

_CONFTEST = """
import json, pathlib
import dealing

KNOWN = {"test_a_many.py": 0.1, "test_dear.py": 9.0, "test_less.py": 2.0}

def pytest_collection_modifyitems(config, items):
    dealing.longest_first(items, KNOWN)

def pytest_runtest_call(item):
    with open("order", "a") as file:
        file.write(item.nodeid + "\\n")
"""


def test_files_come_by_what_they_cost_and_stay_whole(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(_CONFTEST)
    for name, count in (("a_many", 5), ("dear", 1), ("less", 2), ("z_unknown", 1)):
        tests = "".join(f"def test_{number}(): pass\n" for number in range(count))
        (tmp_path / f"test_{name}.py").write_text(tests)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "xdist", "-n", "1", "--dist", "loadfile", "--no-loadscope-reorder"],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(dealing.__file__).parent),
            "PYTEST_ADDOPTS": "",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "order").read_text().split() == [
        "test_z_unknown.py::test_0",
        "test_dear.py::test_0",
        *(f"test_less.py::test_{number}" for number in range(2)),
        *(f"test_a_many.py::test_{number}" for number in range(5)),
    ]


def test_costs_are_known_longest_first_of_files_that_are_there() -> None:
    known, there = dealing.seconds_of(dealing.KEPT), dealing.files(_ROOT)
    assert list(known.values()) == sorted(known.values(), reverse=True)
    gone = sorted(set(known) - there)
    assert len(gone) <= _STALE * len(there), f"run `make test`, `make test-real`, `make seconds`: {gone}"


def test_what_the_last_run_measured_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, measured = tmp_path / "tests/support/seconds.json", tmp_path / ".pytest_cache/d/durations/files.json"
    for path in (kept, measured):
        path.parent.mkdir(parents=True)
    for name in ("slower", "as_before", "quick_now"):
        (tmp_path / f"tests/test_{name}.py").touch()
    before = {"tests/test_gone.py": 9, "tests/test_quick_now.py": 8, "tests/test_as_before.py": 7}
    kept.write_text(json.dumps(before))
    measured.write_text(json.dumps({"tests/test_slower.py": 8.04, "tests/test_quick_now.py": 0.5}))
    monkeypatch.setattr(dealing, "KEPT", kept)
    dealing.main()
    assert list(dealing.seconds_of(kept).items()) == [
        ("tests/test_slower.py", 8.0),
        ("tests/test_as_before.py", 7),
        ("tests/test_quick_now.py", 0.5),
    ]

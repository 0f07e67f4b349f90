"""What a type checker says of a user's script."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = """
import conrepair
from conrepair import Compared
from conrepair.testing import assert_equivalent


def check(source: str, target: str) -> Compared:
    found = conrepair.compare(source, target, samples=4)
    print(found.verdict, found.reason)
    return found


def wrong(source: str, target: str) -> None:
    conrepair.comprae(source, target)
    found = conrepair.localize(source, target, sampels=4)
    print(found.verdct)
    assert_equivalent(source, target, tolerance=1e-3)
    assert_equivalent(source, target, rtol=1e-3, samples=8)
"""


@pytest.mark.slow
def test_typos_of_a_user_s_are_found(tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(SCRIPT)
    words = [
        "--strict",
        "--config-file=",
        "--follow-imports=silent",
        "--cache-dir",
        str(tmp_path / "cache"),
        "user.py",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *words],
        cwd=tmp_path,
        env=os.environ | {"MYPYPATH": f"{ROOT}:{ROOT / 'plugins' / 'lab'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    typos = ["comprae", "sampels", "verdct", "tolerance"]
    assert [next((word for word in typos if word in line), line) for line in errors] == typos, done.stdout

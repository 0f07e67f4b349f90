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


def check(source: str, target: str) -> Compared:
    found = conrepair.compare(source, target, samples=4)
    print(found.verdict, found.reason)
    return found


def wrong(source: str, target: str) -> None:
    conrepair.comprae(source, target)
    found = conrepair.localize(source, target, sampels=4)
    print(found.verdct)
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
        env=os.environ | {"MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert [next(word for word in ("comprae", "sampels", "verdct") if word in line) for line in errors] == [
        "comprae",
        "sampels",
        "verdct",
    ], done.stdout

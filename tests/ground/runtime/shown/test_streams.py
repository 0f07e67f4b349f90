"""No word that can't be written ends a command, and none is written to another file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conrepair.ground.runtime.shown.streams import standard_streams

SCRIPT = """
import os, sys
from conrepair.ground.runtime.shown.streams import standard_streams
with standard_streams() as streams:
    opened = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
    print("a name: \\udce9")
    sys.stderr.write("a word\\n")
    os.write(opened, f"{streams.problem}|{opened > 2}|{streams.spoke > 0}".encode())
"""


def told(tmp_path: Path, redirections: str, *, output: int = subprocess.PIPE) -> tuple[int, str, str]:
    """Exit code, what standard error got, and what the script found."""
    command = ["bash", "-c", f'exec "$@" {redirections}', "bash", sys.executable, "-c", SCRIPT]
    done = subprocess.run(
        [*command, str(tmp_path / "found")], stdout=output, stderr=subprocess.PIPE, text=True, check=False
    )
    return done.returncode, done.stderr, (tmp_path / "found").read_text()


@pytest.mark.parametrize("redirections", ["", ">&-", "2>&-", "2>/dev/full", ">&- 2>&- <&-"])
def test_words_that_nobody_wants(tmp_path: Path, redirections: str) -> None:
    code, error, found = told(tmp_path, redirections)
    assert (code, found) == (0, "|True|True")
    assert error in {"a word\n", ""}


def test_a_pipe_that_nobody_reads(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    code, error, found = told(tmp_path, "", output=write)
    os.close(write)
    assert (code, error, found) == (0, "a word\n", "|True|True")


def test_a_full_disk_is_said(tmp_path: Path) -> None:
    code, error, found = told(tmp_path, ">/dev/full")
    assert (code, error) == (0, "a word\n")
    assert found.startswith("standard output can't be written (No space left on device)")


def test_streams_of_others_stay_theirs(capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.stdout, sys.stderr
    with standard_streams() as streams:
        assert (sys.stdout, sys.stderr) == before
        assert not streams.problem
    assert (sys.stdout, sys.stderr) == before

"""A finding's program is run as a stranger runs it, and what it did is told: it's there, it's gone, or it fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from conrepair_lab.fuzz.shown import Shown, shown
from conrepair_lab.fuzz.suspicion import Suspicion

CRASH = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"


def ran(text: str, folder: Path, kind: str = "numbers", seconds: float = 60, needs: tuple[str, ...] = ()) -> Shown:
    (program := folder / "reproduce.py").write_text(text, encoding="utf-8")
    found = shown(program, Suspicion(kind, "run"), needs, seconds=seconds)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("print('y is 1'); raise SystemExit(1)", "numbers", Shown("", "there", "exit code 1", "y is 1")),
        ("print('right')", "numbers", Shown("", "gone", "exit code 0", "right")),
        ("raise SystemExit(2)", "exception", Shown("", "fails", "exit code 2", "")),
        (CRASH, "crash", Shown("", "there", "SIGSEGV", "")),
        (CRASH, "numbers", Shown("", "fails", "SIGSEGV", "")),
        ("raise SystemExit(1)", "crash", Shown("", "fails", "exit code 1", "")),
    ],
)
def test_how_a_program_ends_says_what_it_shows(text: str, kind: str, expected: Shown, tmp_path: Path) -> None:
    assert ran(text, tmp_path, kind) == expected


def test_an_error_of_the_program_itself_shows_nothing(tmp_path: Path) -> None:
    found = ran("value = nan", tmp_path)
    assert (found.verdict, found.ended) == ("fails", "exit code 1")
    assert "name 'nan' is not defined" in found.printed


def test_what_never_ends_is_there_where_that_is_the_fault(tmp_path: Path) -> None:
    verdicts = {kind: ran("while True: pass", tmp_path, kind, seconds=0.5).verdict for kind in ("hang", "numbers")}
    assert verdicts == {"hang": "there", "numbers": "fails"}


def test_libraries_that_a_program_does_not_need_are_not_found(tmp_path: Path) -> None:
    text = "import numpy\ntry:\n    import onnx\nexcept ImportError:\n    raise SystemExit(1)"
    verdicts = [ran(text, tmp_path, needs=needs).verdict for needs in ((), ("onnx",))]
    assert verdicts == ["there", "gone"]
    assert "halted" in ran("import conrepair", tmp_path, needs=("onnxruntime",)).printed


def test_what_takes_all_memory_is_not_run(tmp_path: Path) -> None:
    assert shown(tmp_path / "none.py", Suspicion("memory", "run"), (), seconds=1) is None

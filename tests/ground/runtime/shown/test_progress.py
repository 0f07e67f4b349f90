"""What is written where no terminal shows bars."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from localized import Variant

import conrepair
from conrepair.ground.runtime.shown.progress import ProgressDisplay


@pytest.mark.parametrize(
    ("quiet", "long", "lines"),
    [
        (False, False, ["copy: 2 of 2"]),
        (False, True, ["copy: 1 of 2, a[0]", "copy: 2 of 2, b"]),
        (True, True, []),
    ],
)
def test_lines(capsys: pytest.CaptureFixture[str], quiet: bool, long: bool, lines: list[str]) -> None:
    with ProgressDisplay(quiet=quiet) as display, display.stage("copy", 2, long=long) as stage:
        for name in ("a[0]", "b"):
            with display.inside(), display.stage("part", 1) as part:
                part.advance()
            stage.advance(name)
    assert capsys.readouterr().err.splitlines() == lines


def test_programs_read_progress_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Variant().write(tmp_path / "net.onnx").path
    with caplog.at_level(logging.INFO, logger="conrepair"):
        conrepair.compare(path, path, in_process=True)
    assert any("comparing both models: 1 done" in record.getMessage() for record in caplog.records)
    assert capsys.readouterr().err == ""
    conrepair.compare(path, path, in_process=True, progress=True)
    assert "comparing both models" in capsys.readouterr().err

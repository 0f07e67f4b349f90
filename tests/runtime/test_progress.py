"""What is written where no terminal shows bars."""

from __future__ import annotations

import pytest

from conrepair.runtime.progress import ProgressDisplay


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

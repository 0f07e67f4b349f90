from __future__ import annotations

import pytest

from conrepair.ground.runtime.shown import progress
from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair.ground.runtime.shown.standing import Elsewhere, Machine, Standing, duration, elsewhere, jobs_elsewhere

TWO = Elsewhere(
    (Machine("w0", {"execute": 3, "localize": 1}, at_work=1), Machine("w1", {"execute": 1000})),
    gone=1,
    again=2,
    moved={"sent": 3 << 20, "received": 0},
)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0 s"), (89, "89 s"), (90, "1.5 min"), (1200, "20 min"), (5400, "1.5 h"), (864_000, "10 days")],
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_a_line_of_machines() -> None:
    said = "jobs: w0 4, w1 1,000, 1 begun; 1 workers gone; 2 given again; sent 3.0 MiB, received 0.0 MiB"
    assert TWO.words == said
    many = Elsewhere(tuple(Machine(f"w{number}", {"execute": 1}) for number in range(1000)), 0, 0, {})
    assert many.words.startswith("jobs: 1,000 workers 1,000, 0 begun")


def test_what_other_machines_do_is_said_while_a_stage_goes_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_LINE_SECONDS", -1.0)
    monkeypatch.setattr(progress, "_PAGE_SECONDS", -1.0)
    told: list[Standing] = []
    with jobs_elsewhere(lambda: TWO):
        display = ProgressDisplay(page=told.append)
        with display, display.stage("copy", 4, done=1) as stage:
            stage.advance()
    assert elsewhere() is None
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("copy: 1 of 4; jobs: w0 4")
    assert lines[1].startswith("copy: 2 of 4, about 0 s left; jobs: w0 4")
    assert [(item.stages[0].done, item.stages[0].total) for item in told] == [(1, 4), (2, 4)]
    assert told[0].stages[0].left is None
    assert told[1].stages[0].left == pytest.approx(2 * told[1].stages[0].seconds, abs=0.1)


def test_nothing_is_said_of_this_machine_alone(capsys: pytest.CaptureFixture[str]) -> None:
    told: list[Standing] = []
    with ProgressDisplay(page=told.append) as display, display.stage("copy", 1) as stage:
        stage.advance()
    assert not told
    assert capsys.readouterr().err == "copy: 1 of 1\n"

"""A command says where its time went."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from localized import WEIGHTS, Variant

from conrepair.application.cli import main
from conrepair.ground.runtime.shown.timings import job_done, recorded


def test_jobs_are_added_up_by_kind() -> None:
    job_done("before", time.perf_counter(), 1.0, {})
    with recorded() as timings:
        for worked in (0.25, 0.5):
            job_done("describe", time.perf_counter() - 1.0, worked, {"align": 0.125})
        job_done("execute", time.perf_counter() - 0.5, 0.25, {})
    job_done("behind", time.perf_counter(), 1.0, {})
    described = timings.kinds["describe"]
    assert list(timings.kinds) == ["describe", "execute"]
    assert (described.count, described.worked, described.parts) == (2, 0.75, {"align": 0.25})
    assert described.waited == pytest.approx(2.0, abs=0.2)
    rows = {line[:22].strip(): line[22:].split() for line in timings.text().splitlines()}
    assert rows["describe (2)"][1] == "0.75"
    assert rows["align"] == ["0.25"]


def test_nothing_but_a_total_is_said_where_nothing_was_done() -> None:
    with recorded() as timings:
        pass
    assert [line.split()[0] for line in timings.text().splitlines()] == ["time", "total"]


def test_a_localization_shows_its_parts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    right = Variant(size=(12, 12)).write(tmp_path / "right.onnx").path
    layer = next(iter(WEIGHTS))
    wrong = Variant(size=(12, 12), weights={layer: WEIGHTS[layer] * 1.5}).write(tmp_path / "wrong.onnx").path
    assert main(["localize", right, wrong, "--timings", "-q", "--samples", "4"]) == 1
    said = capsys.readouterr().err
    names = [line[:22].strip() for line in said.splitlines()]
    assert {"before the first job", "look", "describe", "localize", "align", "behind the last job", "total"} <= set(
        names
    )
    assert main(["localize", right, wrong, "-q", "--samples", "4"]) == 1
    assert "total" not in capsys.readouterr().err

"""Campaigns that screen patterns: what's suspect becomes findings, and nothing is screened twice."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest
from stand_in import StandIn, leave_all, registered, relu_is_abs

from benchmarks.common.here_lane import HereLane
from conrepair_lab.campaigns.fuzz_database import DATABASE, Database
from conrepair_lab.fuzz.screen.screening import FURTHER, SINGLE
from conrepair_lab.generate.patterns.pattern import patterns
from conrepair_lab.options.fuzz import Fuzz
from conrepair_lab.report.fuzz.folder import read_finding
from conrepair_lab.report.fuzz.summary import Summary
from conrepair_lab.runs.fuzzing import fuzz

SCREENED = "relu and clip"
ASKED = Fuzz(
    systems=["wrong-none", "wrong-all", "right-all"],
    alone=0,
    count=0,
    workers=1,
    patterns={name: 0.0 for name in patterns() if name != SCREENED},
)


@pytest.fixture(scope="module", autouse=True)
def systems() -> Iterator[None]:
    """One with a wrong pass, and one that's right."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("conrepair.ground.runtime.processes.workers.Lane", HereLane)
        registered(monkeypatch, StandIn(passes=[relu_is_abs], name="wrong"))
        registered(monkeypatch, StandIn(passes=[leave_all], name="right"))
        yield


@pytest.fixture(scope="module")
def screened(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Summary]:
    root = tmp_path_factory.mktemp("screened") / "fuzz"
    return root, fuzz(ASKED, root, quiet=True)


def test_a_pass_that_is_wrong_is_found_in_a_pattern(screened: tuple[Path, Summary]) -> None:
    root, summary = screened
    assert summary.over
    assert {(item.entry, item.cause.causes) for item in summary.findings} == {("wrong-all", (("relu_is_abs",),))}
    finding = read_finding(next((root / "findings").iterdir()))
    assert finding.source.startswith(f"pattern '{SCREENED}': ")
    assert "Relu" in finding.operators


def test_the_summary_says_how_many_were_compared(screened: tuple[Path, Summary]) -> None:
    _, summary = screened
    assert set(summary.screened) == {"wrong-all", "right-all"}, "there's nothing to compare the plain setting with"
    assert min(summary.screened.values()) > 20
    assert any("compared with results without optimizations" in line for line in summary.lines("fuzz"))
    stopped = dataclasses.replace(summary, over=False, waiting=3)
    assert any("3 suspicions not looked into" in line for line in stopped.lines("fuzz"))


def test_nothing_is_screened_twice(screened: tuple[Path, Summary], monkeypatch: pytest.MonkeyPatch) -> None:
    root, summary = screened
    with Database(root / DATABASE, ASKED.identity | {"own": []}) as database:
        before = set(database.screened())
    assert before == {("wrong-all", SCREENED, SINGLE), ("right-all", SCREENED, SINGLE)}
    monkeypatch.setattr("conrepair_lab.campaigns.screening_jobs.Screener", None)
    assert fuzz(ASKED, root, quiet=True).findings == summary.findings


def test_further_variants_are_asked_for(tmp_path: Path) -> None:
    asked = dataclasses.replace(ASKED, systems=["right-all"], screen=2)
    assert not fuzz(asked, tmp_path / "fuzz", quiet=True).findings
    with Database(tmp_path / "fuzz" / DATABASE, asked.identity | {"own": []}) as database:
        assert {step for _, _, step in database.screened()} == {SINGLE, FURTHER}


def test_no_screen_is_no_screen(tmp_path: Path) -> None:
    assert not fuzz(dataclasses.replace(ASKED, screen=0), tmp_path / "fuzz", quiet=True).screened

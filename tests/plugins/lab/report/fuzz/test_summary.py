"""A campaign in lines: what's new first, and what became of suspicions."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from fuzz_findings import comparing

from conrepair_lab.fuzz.suspicion import Suspicion
from conrepair_lab.report.fuzz.summary import Summary


def summary_of(*findings: Any, **changes: Any) -> Summary:
    names = {item.name: 1 for item in findings}
    return dataclasses.replace(Summary(findings, {}, {}, {}, names, {}, 0, True), **changes)


def lines(summary: Summary) -> str:
    return "\n".join(summary.lines("out"))


def test_only_what_is_not_known_ends_with_1(tmp_path: Path) -> None:
    new, known = comparing(tmp_path), comparing(tmp_path, known="issue 7")
    assert [summary_of(*item).exit_code for item in ((), (known,), (new,), (new, known))] == [0, 0, 1, 1]
    assert summary_of(new, known).fresh == (new,)


def test_findings_verdicts_and_time(tmp_path: Path) -> None:
    finding = comparing(tmp_path)
    counts = {"ort-none": {"refused": 2, "right": 3}}
    told = lines(summary_of(finding, counts=counts, seconds={"ort-none": 1.25}, suspicions={"gone": 2, "suspect": 1}))
    assert told.startswith("out: 1 new finding\n")
    assert finding.title in told
    assert finding.suspicion.message in told
    assert "ort-none: 5 networks in 1.2 s: 2 refused, 3 right" in told
    assert "2 suspicions not seen a second time" in told
    assert "time was up" not in told
    assert "the time was up before all were tried: the same command continues" in lines(
        summary_of(counts=counts, over=False)
    )


def test_a_campaign_that_tried_nothing_is_no_good_end() -> None:
    untried = summary_of(over=False, counts={"ort-none": {}})
    assert untried.exit_code == 4
    assert "nothing was tried: the time was up while networks were made" in lines(untried)
    assert summary_of(over=False, counts={"ort-none": {"right": 1}}).exit_code == 0


def test_of_many_the_first_are_told_and_long_words_are_cut(tmp_path: Path) -> None:
    finding = comparing(tmp_path, suspicion=Suspicion("exception", "load", "Fail", "word " * 1000))
    told = lines(summary_of(*[finding] * 25))
    assert "and 5 more (findings.html)" in told
    assert max(map(len, told.splitlines())) < 200


@pytest.mark.parametrize("verdict", ["ill-conditioned", "unjudged", "near", "gone", "double", "waits", "lost"])
def test_each_end_of_a_suspicion_has_words(verdict: str) -> None:
    assert "\n3 suspicions " in lines(summary_of(suspicions={verdict: 3}))

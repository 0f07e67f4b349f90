"""The page shows everything, escapes whatever libraries and files say, and runs nothing."""

from __future__ import annotations

import dataclasses
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from fuzz_findings import comparing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conrepair_lab.fuzz.cause import Cause
from conrepair_lab.fuzz.suspicion import Suspicion
from conrepair_lab.report.fuzz.folder import findings_page
from conrepair_lab.report.fuzz.summary import Summary

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"' onload='x {{ 7*7 }} </pre>"


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def summary_of(*findings: Any, **changes: Any) -> Summary:
    found = Summary(
        findings=findings,
        counts={"ort-none": {"right": 3, "suspect": 1}},
        seconds={"ort-none": 1.25},
        refusals={"ort-none": [("load: no kernel", 2)]},
        seen_in={item.name: 1 for item in findings},
        suspicions={"suspect": 1, "gone": 2},
        seed=7,
        over=True,
    )
    return dataclasses.replace(found, **changes)


def test_hostile_texts_are_shown_as_they_are(tmp_path: Path) -> None:
    said = Suspicion("exception", "load", HOSTILE, HOSTILE, HOSTILE, HOSTILE)
    cause = Cause(causes=((HOSTILE,),), heals=((HOSTILE,),), lines=(HOSTILE,), words=HOSTILE)
    texts = {"blamed": {HOSTILE: HOSTILE}, "judges": HOSTILE, "source": HOSTILE, "also": (HOSTILE,), "known": HOSTILE}
    finding = comparing(tmp_path, suspicion=said, cause=cause, operators=(HOSTILE,), **texts)
    counts = {HOSTILE: {"right": 1}}
    page = findings_page(
        summary_of(finding, counts=counts, refusals={HOSTILE: [(HOSTILE, 1)]}, suspicions={"gone": 1})
    )
    found = Tags(page)
    assert not found.tags & {"script", "img", "iframe", "a", "link", "form", "object"}
    assert not [name for name in found.attributes if name.startswith("on")]
    assert HOSTILE in found.text
    assert "49" not in page


def test_a_page_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    page = findings_page(summary_of(comparing(tmp_path)))
    assert "default-src 'none'" in page
    assert not re.search(r"(?:src|href)\s*=|url\(|@import|<script", page)


def test_what_was_found_and_counted_is_there(tmp_path: Path) -> None:
    finding = comparing(tmp_path)
    known = dataclasses.replace(finding, setting="all", known="issue 7")
    page = Tags(findings_page(summary_of(finding, known, over=False))).text
    for words in (
        finding.title,
        known.title,
        "issue 7",
        "load: no kernel",
        "1.2",
        "networks: 7",
        "The time was up",
        "not seen a second",
    ):
        assert words in page
    assert "1 new finding, and 1 known" in page


def test_nothing_was_found() -> None:
    assert "No fault was found." in findings_page(summary_of())


@pytest.mark.parametrize(
    "suspicion",
    [
        Suspicion("numbers", "answers", over=float("inf"), allowed=0.0, given=float("nan"), exact=1.0),
        Suspicion("crash", "process", "SIGSEGV"),
        Suspicion("layout", "answers", message="y isn't the same"),
    ],
)
def test_each_kind_has_a_section(suspicion: Suspicion, tmp_path: Path) -> None:
    finding = comparing(tmp_path, suspicion=suspicion)
    assert finding.title in Tags(findings_page(summary_of(finding))).text


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(st.text())
def test_any_words_are_escaped(tmp_path: Path, words: str) -> None:
    finding = comparing(tmp_path, suspicion=Suspicion("exception", "load", "Fail", words))
    plain = Tags(findings_page(summary_of(comparing(tmp_path))))
    found = Tags(findings_page(summary_of(finding)))
    assert found.tags == plain.tags

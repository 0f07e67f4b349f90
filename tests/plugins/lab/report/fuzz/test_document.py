"""A maintainer's document: by library and root, the gravest first; where it began, and what was searched for it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from fuzz_findings import comparing

from conrepair_lab.fuzz.cause import Cause
from conrepair_lab.fuzz.finding import Finding, Span
from conrepair_lab.fuzz.known import Known, KnownFinding
from conrepair_lab.fuzz.shown import Shown
from conrepair_lab.fuzz.suspicion import Suspicion
from conrepair_lab.report.fuzz.document import SEVERITIES, begun, document, feed, root, roots, severity, thread


def off(given: Any, exact: Any, allowed: float = 1e-9) -> Suspicion:
    return Suspicion("numbers", "answers", "", f"y is {given}", "", "y", (), given, exact, allowed, 10.0)


@pytest.fixture
def found(tmp_path: Path) -> Finding:
    return comparing(tmp_path)


def seen(found: Finding, suspicion: Suspicion, *operators: str, **changes: Any) -> Finding:
    return dataclasses.replace(found, suspicion=suspicion, operators=operators or found.operators, **changes)


@pytest.mark.parametrize(
    ("suspicion", "expected"),
    [
        (off(1.5, 1.0), "silent and large"),
        (off(0.0, -4e-8), "silent and small"),
        (off(1.0005, 1.0), "silent and small"),
        (Suspicion("shape", "answers"), "silent and large"),
        (Suspicion("not finite", "answers", given=float("nan"), exact=1.0), "silent and large"),
        (Suspicion("crash", "process", "SIGSEGV"), "crash or hang"),
        (Suspicion("exception", "load", "Fail", "no"), "error"),
        (Suspicion("slower", "slower", given=3.0, exact=1.0), "slower"),
    ],
)
def test_how_grave_it_is(suspicion: Suspicion, expected: str, found: Finding) -> None:
    assert SEVERITIES[severity(seen(found, suspicion))] == expected


def test_formulas_that_lose_digits_near_zero_have_one_root(found: Finding) -> None:
    given = {"Elu": (0.0, -3e-9), "Selu": (-2.1e-7, -1.76e-7), "Celu": (0.0, -6e-11), "Tanh": (0.0, 1e-8)}
    items = [seen(found, off(*pair, allowed=1e-15), name) for name, pair in given.items()]
    items.append(seen(found, off(0.0, 4e-8, allowed=1e-14), "Softplus"))
    (one,) = roots(items)
    assert "expm1" in one.words
    assert len(one.findings) == 5
    assert "expm1" not in root(seen(found, off(0.5, -3e-9), "Elu"))  # that far off it's something else
    assert root(seen(found, off(6e-8, 1.1e-7, allowed=1e-13), "Sigmoid")) != one.words


@pytest.mark.parametrize(
    ("suspicion", "words"),
    [
        (off(2**53, 2**53 + 1, 0.0), "large whole numbers go through floating point"),
        (off(0.69314718246, 0.69314718056, 1e-15), "double precision is computed in single precision"),
        (
            Suspicion("exception", "convert", "TypeError", "Both must be one type. However, 'a' isn't"),
            "TypeError: Both",
        ),
    ],
)
def test_other_roots(suspicion: Suspicion, words: str, found: Finding) -> None:
    assert root(seen(found, suspicion)).startswith(words)


def test_findings_of_one_pass_have_one_root(found: Finding) -> None:
    cause = Cause(causes=(("Slice",),))
    assert root(seen(found, off(2.0, 1.0), "Abs", cause=cause)) == root(
        seen(found, off(9.0, 1.0), "Neg", cause=cause)
    )


def test_the_gravest_come_first(found: Finding) -> None:
    said = [Suspicion("exception", "load", "Fail", "no"), off(0.0, 4e-8), off(2.0, 1.0), Suspicion("crash", "run")]
    items = [seen(found, one, f"Op{place}") for place, one in enumerate(said)]
    assert [item.severity for item in roots(items)] == [
        "silent and large",
        "crash or hang",
        "silent and small",
        "error",
    ]
    text = document(items, Known(), "findings")
    assert text.startswith("4 findings: 1 silent and large, 1 crash or hang, 1 silent and small, 1 error.")
    places = [text.index(f"Op{place}") for place in (2, 3, 1, 0)]
    assert places == sorted(places)
    assert [item["tags"][0] for item in feed(items, {})["items"]] == [item.severity for item in roots(items)]


def test_where_it_began_and_who_knows_it(found: Finding) -> None:
    assert begun(found).startswith("not asked")
    assert thread(found) == "no tracker has been searched for it yet"
    known = Known((KnownFinding(where='looked for in a/b by "Min" on 2026-01-02', key=found.key, what="halves"),))
    item = dataclasses.replace(found, since=Span("1.20.0", "1.19.2", "", exact=False))
    text = document([item], known, "up")
    assert 'looked for in a/b by "Min" on 2026-01-02' in text
    assert "halves" in text
    assert "wrong since 1.20.0, right in 1.19.2, no later release is known to be right; not all" in text
    assert f"(up/{item.name}/issue.md)" in text


def test_a_program_that_does_not_show_it_is_told(found: Finding) -> None:
    ran = Shown("", "fails", "exit code 1", "NameError")
    assert "fails (exit code 1)" in document([dataclasses.replace(found, shown=(ran,))], Known(), "up")


def test_a_feed_has_what_readers_ask_for(found: Finding) -> None:
    told = feed([found], {found.name: "2026-01-02T03:04:05+00:00"})
    assert told["version"].startswith("https://jsonfeed.org/version/1")
    (item,) = told["items"]
    assert (item["id"], item["title"]) == (found.key, found.title)
    assert item["date_published"] == "2026-01-02T03:04:05+00:00"
    assert found.suspicion.message in item["content_text"]


def test_nothing_found_is_said() -> None:
    assert document([], Known(), "up") == "No fault was found.\n"
    assert feed([], {})["items"] == []

"""What counts as named."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.common.cases import Case
from benchmarks.localization.rows import Row, sums
from benchmarks.localization.scoring import score
from benchmarks.localization.tables import report


def fault(*layers: str, source: tuple[str, ...] = (), kind: str = "graph") -> dict[str, Any]:
    return {"kind": kind, "target_layers": list(layers), "source_layers": list(source)}


@pytest.mark.parametrize(
    ("found", "first", "loosely", "top3", "top3_loosely"),
    [
        ([fault("guilty", "b")], True, True, True, True),
        ([fault("a", "b", "guilty")], False, True, True, True),
        ([fault("a", "b", "c", "guilty")], False, True, False, True),
        ([fault("a"), fault("b"), fault("guilty")], False, False, True, True),
        ([fault("a", "b"), fault("c", "guilty")], False, False, False, True),
        ([fault("a", "b"), fault("b", "guilty")], False, False, True, True),  # one name counts once
        ([fault("a"), fault("b"), fault("c"), fault("guilty")], False, False, False, False),
        ([fault("a", source=("origin",))], True, True, True, True),
        ([fault("a")], False, False, False, False),
    ],
)
def test_where_the_guilty_layer_stands(
    found: list[dict[str, Any]], first: bool, loosely: bool, top3: bool, top3_loosely: bool
) -> None:
    scored = score([fault("guilty", source=("origin",))], found)
    assert (scored.first, scored.first_loosely, scored.top3, scored.top3_loosely) == (
        first, loosely, top3, top3_loosely,
    )  # fmt: skip
    assert scored.detected


def test_of_several_faults_each_needs_a_name_and_its_kind() -> None:
    truth = [fault("a"), fault("b", kind="parameters")]
    both = score(truth, [fault("x", "a"), fault("b", kind="parameters"), fault("elsewhere")])
    assert (both.all_named, both.kind, both.astray) == (True, True, 1)
    assert not score(truth, [fault("a"), fault("b")]).kind
    assert not score(truth, [fault("a")]).all_named


def test_nothing_found() -> None:
    scored = score([fault("a")], [])
    assert not any((scored.detected, scored.first, scored.top3, scored.kind, scored.all_named))


def test_a_conversion_that_is_off_by_itself_is_no_false_alarm() -> None:
    found = fault("a") | {"evidence": [], "introduced_error": 0.2, "noise_floor": 1e-6}
    result = {"found": [found], "injected": [], "verdict": "faulty", "output_error": 0.2, "seconds": 1.0}
    right = Row(Case("correct", "m", "s", "b"), "measured", "", result)
    off = Row(right.case, "measured", "", result | {"off": "the target differs by 2.0e-01"})
    assert (right.false_alarm, off.false_alarm, off.missed) == (True, False, False)
    assert sums([right, off]) == sums([right])
    text = report([right, off])
    assert "## Off by itself (1)" in text
    assert "| m:s:b | the target differs by 2.0e-01 | faulty | 2.0e-01 | graph: a |" in text

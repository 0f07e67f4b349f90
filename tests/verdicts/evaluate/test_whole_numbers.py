"""Outputs of integers and truth values."""

from __future__ import annotations

import numpy as np
import pytest

from conrepair.ground.metrics import tensors
from conrepair.verdicts.evaluate.tolerance import Tolerance
from conrepair.verdicts.evaluate.verdict import Verdict
from conrepair.verdicts.evaluate.whole_numbers import are_whole, differing_share, judge_whole

RIGHT = np.arange(40).reshape(4, 10)


def wrong(count: int) -> np.ndarray:
    """So many numbers are others, the first of them at [1, 2]."""
    changed = RIGHT.copy()
    changed.reshape(-1)[12 : 12 + count] += 1
    return changed


def judged(
    count: int, *, quantized: bool = False, narrow: str = "", ties: float | None = None
) -> tuple[Verdict, str]:
    tolerance = Tolerance(quantized_top1=0.1)
    return judge_whole(RIGHT, wrong(count), tolerance, quantized=quantized, narrow=narrow, ties=ties)


@pytest.mark.parametrize(
    ("count", "options", "verdict"),
    [
        (0, {}, Verdict.EQUIVALENT),
        (1, {}, Verdict.FAULTY),
        (4, {"quantized": True}, Verdict.QUANTIZED),
        (5, {"quantized": True}, Verdict.FAULTY),
        (5, {"quantized": True, "ties": 0.5}, Verdict.FAULTY),
        (2, {"ties": 0.05}, Verdict.UNDECIDED),  # the source itself gives as many otherwise
        (3, {"ties": 0.05}, Verdict.FAULTY),
        (4, {"narrow": "float16"}, Verdict.UNDECIDED),
        (5, {"narrow": "float16"}, Verdict.FAULTY),
        (5, {"narrow": "float16", "ties": 0.125}, Verdict.UNDECIDED),
    ],
)
def test_equal_or_not(count: int, options: dict[str, object], verdict: Verdict) -> None:
    found, words = judged(count, **options)  # type: ignore[arg-type]
    assert found is verdict
    if count:
        assert f"{count} of 40 integers differ; the first, at index [1, 2], is 13 instead of 12" in words


@pytest.mark.parametrize("chunk", [1, 7, 10, 25, 1 << 20])
def test_rows_at_a_time_change_nothing(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensors, "CHUNK_ELEMENTS", chunk)
    changed = wrong(9)
    changed[3, 9] = 0
    assert differing_share(RIGHT, changed) == 10 / 40
    words = judge_whole(RIGHT, changed, Tolerance(), quantized=False, narrow="", ties=None)[1]
    assert "10 of 40 integers differ; the first, at index [1, 2], is 13 instead of 12" in words


def test_nothing_is_equal_to_nothing() -> None:
    none = np.zeros((4, 0), np.int64)
    assert differing_share(none, none) == 0.0
    found = judge_whole(none, none, Tolerance(), quantized=False, narrow="", ties=None)
    assert found == (Verdict.EQUIVALENT, "all 0 integers are equal")


def test_kinds_of_numbers() -> None:
    truth = np.array([True, False])
    assert are_whole(truth, np.arange(2), np.arange(2, dtype=np.uint8))
    assert not are_whole(truth, np.arange(2.0))
    words = [
        judge_whole(one, two, Tolerance(), quantized=False, narrow="", ties=None)[1]
        for one, two in ((truth, truth), (truth, truth.astype(int)))
    ]
    assert words == ["all 2 booleans are equal", "all 2 integers are equal"]

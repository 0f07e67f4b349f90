"""Faults of attention that were named last, or with innocent neighbours, when the target is written otherwise."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from benchmarks.attention.cases import plan
from benchmarks.attention.trial import run
from benchmarks.localization.scoring import score

DEVELOPMENT = (11, 12)
CASES = {case.name: case for case in plan(DEVELOPMENT)}
QUICK = {
    "a shared tensor read twice": "attention-11-16:writing-0:writing-1:one:keys-for-values@11",
    "not turned back": "attention-11-21:writing-0:writing-0:all:heads-merged-otherwise@11",
    "lower masks": "attention-12-13:writing-0:writing-2:all, renamed:heads-merged-otherwise@12",
    "Where turned around": "attention-11-21:writing-0:writing-1:one:softmax-of-another-axis@11",
    "exchanged operands": "attention-12-10:writing-0:writing-1:one:queries-and-keys-exchanged@12",
    "and scaled weights": "attention-12-4:writing-0:writing-1:one:queries-and-keys-exchanged@12",
    "a choice turned round": "attention-12-3:writing-0:writing-0:all, renamed:mask-inverted@12",
}
SLOW = {
    "a scale in other weights": "attention-11-11:writing-0:writing-1:one:caches-exchanged@11",
    "long branches between": "attention-12-3:writing-0:writing-1:all:angles-of-another-base@12",
    "a mask computed from sizes": "attention-11-4:writing-0:writing-0:one:mask-one-behind@11",
    "its opposite": "attention-11-4:writing-0:writing-1:one:window-narrower@11",
    "an axis of one elsewhere": "attention-11-11:writing-0:writing-0:one:key-heads-tiled@11",
    "a computed constant": "attention-12-4:writing-0:writing-0:all, renamed:slopes-of-another-base@12",
}
"""Those that take longest."""


@pytest.mark.parametrize(
    "name",
    [
        *(pytest.param(name, id=what) for what, name in QUICK.items()),
        *(pytest.param(name, id=what, marks=pytest.mark.slow) for what, name in SLOW.items()),
    ],
)
def test_named_first_and_alone(name: str, tmp_path: Path) -> None:
    result = run(tmp_path, case=dataclasses.asdict(CASES[name]))
    assert result["status"] == "measured", result["words"]
    assert result["verdict"] == "faulty"
    found = score(result["injected"], result["found"])
    assert found.first
    assert found.all_named
    assert not found.astray

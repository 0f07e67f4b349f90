"""What doesn't hold on samples that took no part is no repair."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from localized import WEIGHTS, Variant

from conrepair.data.feeds import DataReference
from conrepair.frameworks.model import Model
from conrepair.frameworks.registry import framework
from conrepair.localize.models import Subject
from conrepair.localize.options import Options
from conrepair.repair import repair
from conrepair.repair.repair import RepairOptions, repair_models
from conrepair.repair.verify import Agreement, is_better, is_worse


@pytest.mark.parametrize(
    ("error", "answers", "worse"),
    [
        (0.1, 3, False),
        (0.105, 4, False),  # chance
        (0.01, 5, True),
        (0.2, 0, True),
        (math.inf, 3, True),
        (math.nan, 3, True),
        (0.0, None, False),
    ],
)
def test_worse_is_more_than_chance(error: float, answers: int | None, worse: bool) -> None:
    assert is_worse(Agreement(64, error, answers), Agreement(64, 0.1, 3)) is worse


@pytest.mark.parametrize(
    ("error", "answers", "better"),
    [
        (0.09, 3, False),  # chance
        (0.05, 3, True),
        (0.1, 1, True),
        (0.05, 5, False),
        (0.2, 0, False),
        (math.nan, 0, False),
        (0.05, None, True),
    ],
)
def test_better_is_more_than_chance(error: float, answers: int | None, better: bool) -> None:
    assert is_better(Agreement(64, error, answers), Agreement(64, 0.1, 3)) is better


def test_what_makes_others_worse_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = WEIGHTS["inner"].copy()
    inner[2] *= -2
    right, wrong = (tmp_path / name for name in ("right.onnx", "wrong.onnx"))
    sides = Variant(size=(12, 12)).write(right), Variant(size=(12, 12), weights={"inner": inner}).write(wrong)

    def subject(model: Model) -> Subject:
        inputs = framework("onnx").describe(model).inputs
        return Subject(model, inputs, DataReference("synthetic", 8, samples=inputs), None)

    told = iter([Agreement(4, 0.1, 1), Agreement(4, 0.2, 3)])
    monkeypatch.setattr(repair, "agreement", lambda *_: next(told))
    options = RepairOptions(Options(samples=4, batch_size=4), seconds=60, unseen=4)
    result = repair_models(*map(subject, sides), tmp_path / "out", options)
    assert (result.edits, result.model, result.patch, result.mended) == ((), None, None, False)
    assert "undone" in result.effects[-1]
    assert not list((tmp_path / "out").iterdir())
    assert np.isclose(result.unseen_after.error, 0.1)

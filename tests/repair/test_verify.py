"""What doesn't hold on samples that took no part is no repair."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from localized import WEIGHTS, Variant

from conrepair.data.feeds import DataReference
from conrepair.frameworks.model import Model
from conrepair.frameworks.registry import framework
from conrepair.graph.layer_graph import Array
from conrepair.localize.models import Subject
from conrepair.localize.options import Options
from conrepair.repair import repair
from conrepair.repair.repair import RepairOptions, repair_models
from conrepair.repair.verify import Agreement, Answers, agreement, answers, is_better, is_worse


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


@given(st.lists(st.integers(1, 5), min_size=1), st.lists(st.integers(1, 5), min_size=1))
def test_batches_are_of_no_matter(ours: list[int], theirs: list[int]) -> None:
    count = min(sum(ours), sum(theirs))
    drawn = np.random.default_rng(11).normal(size=(2, max(sum(ours), sum(theirs)), 3)).astype(np.float32)
    found = agreement(*(list(_in_batches(side, sizes)) for side, sizes in zip(drawn, (ours, theirs), strict=True)))
    right, given = drawn[:, :count].astype(np.float64)
    assert found.samples == count
    assert found.error == pytest.approx(np.linalg.norm(right - given) / np.linalg.norm(right), rel=1e-6)
    assert found.top1_differing == (right.argmax(1) != given.argmax(1)).sum()


def _in_batches(array: Array, sizes: list[int]) -> Iterator[Answers]:
    begin = 0
    for size in sizes:
        yield Answers(size, {"scores": array[begin : begin + size], "of all": np.ones((), np.float32)})
        begin += size


def test_a_fixed_batch_is_compared_with_an_open_one(tmp_path: Path) -> None:
    sides = [Variant(size=(12, 12)).write(tmp_path / f"{name}.onnx") for name in ("fixed", "open")]
    fixed = onnx.load(sides[0].path)
    fixed.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 2
    onnx.save(fixed, sides[0].path)
    described = [framework("onnx").describe(model).inputs for model in sides]
    drawn = DataReference("synthetic", 7, samples=described[1])
    subjects = [Subject(model, inputs, drawn, None) for model, inputs in zip(sides, described, strict=True)]
    found = agreement(*(answers(side, side.model, begin=1, count=6) for side in subjects))
    assert (found.samples, found.top1_differing) == (6, 0)
    assert found.error < 1e-6


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

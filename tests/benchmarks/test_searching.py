"""Planted defects that methods of searching are compared by."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.searching.__main__ import searched
from benchmarks.searching.defects import DEFECTS
from benchmarks.searching.pairs import pair
from conrepair_lab.tracing.search.objectives import guide


@pytest.mark.parametrize("name", DEFECTS)
def test_a_right_function_has_no_defect_beyond_rounding(name: str) -> None:
    x = np.random.default_rng(0).normal(0, 1, (4, 12)).astype(np.float32)
    faulty, right = (np.asarray(function(x), np.float32) for function in DEFECTS[name])
    exact = DEFECTS[name][1](x.astype(np.float64))
    assert np.allclose(right, exact, rtol=1e-4)
    assert faulty.shape == exact.shape


def test_scores_are_those_of_the_guide() -> None:
    case = pair("tanh by exp", 3)
    points = np.random.default_rng(0).uniform(-1, 1, (6, case.space.size))
    scores, clear, raw = case.evaluate(points)
    inputs = case._inputs(points)
    one, other = case._side(inputs, case.faulty), case._side(inputs, case.right)
    wanted = [guide([a], [b]) for a, b in zip(one, other, strict=True)]
    assert scores == pytest.approx(wanted, abs=1e-6)
    assert (clear <= raw).all()


def test_methods_have_budgets() -> None:
    runs = searched(pair("tanh by exp", 0), ["mega", "annealing", "conditioning"], [1, 2], 40)
    assert [[run.spent for run in found] for found in runs.values()] == [[40, 40], [40, 40], [20, 20]]
    assert max(run.clear for run in runs["mega"]) > 1e-3

"""Passes of answers through zero."""

from __future__ import annotations

import numpy as np
import pytest

from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair_lab.tracing.search.methods.all_methods import METHODS
from conrepair_lab.tracing.search.methods.crossing import Crossing, numbers
from conrepair_lab.tracing.search.search import run
from conrepair_lab.tracing.search.space import space_of

FUNCTIONS = {"line": lambda x: x - 0.3, "cube": lambda x: (x - 0.3) ** 3, "steep": lambda x: np.exp(9 * x) - 5}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_two_points_are_drawn_together(name: str) -> None:
    ends = [np.array([-1.0]), np.array([1.0])]
    crossing = Crossing(0, 1, ends, [FUNCTIONS[name](end).item() for end in ends])
    nearest = np.inf
    while crossing.going:
        answer = FUNCTIONS[name](point := crossing.point())
        nearest = min(nearest, abs(answer.item()))
        crossing.told(point, [np.zeros(1), answer])
    assert nearest < 1e-5 * np.ptp([FUNCTIONS[name](end) for end in (-1.0, 1.0)])
    assert crossing.steps <= 12


def test_what_has_no_such_element_ends_it() -> None:
    crossing = Crossing(0, 5, [np.zeros(1), np.ones(1)], [-1.0, 1.0])
    crossing.told(crossing.point(), [])
    assert not crossing.going


def test_numbers_are_those_that_are_real_and_finite() -> None:
    outputs = [np.array([[1.0, np.nan]], np.float32), np.array([3]), np.array(-np.inf)]
    assert numbers(outputs).tolist() == [1, 0, 0]


@pytest.mark.parametrize(("name", "evaluations"), [("mega", 200), ("conditioning", 50)])
def test_answers_near_zero_are_found_soon(name: str, evaluations: int) -> None:
    space = space_of([TensorSpec("x", (1, 12), "float32")])
    weights = np.random.default_rng(3).normal(1, 1, (12, 4))
    nearest = np.inf

    def answers(points: np.ndarray) -> list[list[np.ndarray]]:
        return [[5 + feeds["x"] @ weights] for feeds in space.each(points)]

    def evaluate(points: np.ndarray) -> np.ndarray:
        nonlocal nearest
        sizes = np.abs([outputs[0].min() for outputs in map(np.abs, answers(points))])
        nearest = min(nearest, sizes.min())
        return -np.log10(sizes + 1e-12)

    run(METHODS[name](space, 120, 0, answers), evaluate, evaluations)
    assert nearest < 1e-4

"""All methods, by the face that they share."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair_lab.tracing.search.methods.all_methods import METHODS
from conrepair_lab.tracing.search.names import MethodName, ObjectiveName
from conrepair_lab.tracing.search.objectives import OBJECTIVES
from conrepair_lab.tracing.search.search import FAILED, Found, run
from conrepair_lab.tracing.search.space import space_of

SPACE = space_of([TensorSpec("x", (1, 12), "float32")])
GUIDED = [name for name in METHODS if name != "random"]


def sphere(points: np.ndarray) -> np.ndarray:
    return -np.square(points - 0.4).sum(axis=1)


def answers(points: np.ndarray) -> list[list[np.ndarray]]:
    return [[point[3:5] - 0.2] for point in points]


def searched(name: str, seed: int, evaluations: int = 300, evaluate=sphere, at_once: int = 8) -> Found:
    return run(METHODS[name](SPACE, evaluations, seed, answers), evaluate, evaluations, at_once=at_once)


@pytest.mark.parametrize("name", METHODS)
def test_the_same_seed_gives_the_same_candidates(name: str) -> None:
    seen: list[list[np.ndarray]] = []
    for seed in (3, 3, 4):
        rows: list[np.ndarray] = []
        searched(name, seed, 120, lambda points, rows=rows: rows.append(points.copy()) or sphere(points))
        seen.append(rows)
    assert all(np.array_equal(a, b) for a, b in zip(seen[0], seen[1], strict=True))
    assert not np.array_equal(np.concatenate(seen[0]), np.concatenate(seen[2]))


@pytest.mark.parametrize("name", METHODS)
def test_candidates_lie_in_the_cube_and_are_as_many_as_planned(name: str) -> None:
    rows: list[np.ndarray] = []
    found = searched(name, 0, 101, lambda points: rows.append(points) or sphere(points))
    every = np.concatenate(rows)
    assert found.evaluations == len(every) == 101
    assert np.abs(every).max() <= 1
    assert max(map(len, rows)) <= 8
    assert found.score == sphere(every).max()
    assert found.history[-1] == (1 + int(sphere(every).argmax()), found.score)


@pytest.mark.parametrize("name", GUIDED)
def test_methods_climb_higher_than_chance(name: str) -> None:
    chance = np.mean([searched("random", seed).score for seed in range(4)])
    assert np.mean([searched(name, seed).score for seed in range(4)]) > chance + 0.3


@pytest.mark.parametrize("name", METHODS)
def test_what_could_not_be_evaluated_stops_no_search(name: str) -> None:
    found = searched(name, 1, 150, lambda points: np.where(points[:, 0] > 0, np.nan, sphere(points)))
    assert found.point[0] <= 0
    assert FAILED < found.score < 0


def test_an_error_of_what_is_evaluated_ends_a_minimizer() -> None:
    def evaluate(points: np.ndarray) -> np.ndarray:
        raise ValueError("no further")

    for name in ("annealing", "cmaes", "differential"):
        with pytest.raises((ValueError, RuntimeError)) as raised:  # SciPy wraps it
            searched(name, 0, evaluate=evaluate)
        assert "no further" in f"{raised.value} {raised.value.__cause__}"


def test_an_endless_plan_leaves_its_start() -> None:
    found = run(METHODS["mega"](SPACE, 10**9, 0, answers), sphere, 600)
    assert found.score > searched("random", 0, 600).score + 0.3


def test_a_budget_of_time_and_a_score_that_is_enough_end_it() -> None:
    assert run(METHODS["random"](SPACE, 9, 0, answers), sphere, 10**9, seconds=0.05).evaluations < 10**7
    assert run(METHODS["random"](SPACE, 9, 0, answers), sphere, 10**9, enough=-1e3, at_once=4).evaluations == 4


def test_what_never_differs_is_left_early() -> None:
    for evaluate, least, most in ((lambda points: np.zeros(len(points)), 100, 115), (sphere, 900, 900)):
        found = run(METHODS["random"](SPACE, 900, 0, answers), evaluate, 900, flat=100)
        assert least <= found.evaluations <= most


def test_each_name_has_a_method_and_an_objective() -> None:
    assert METHODS.keys() == set(get_args(MethodName))
    assert OBJECTIVES.keys() == set(get_args(ObjectiveName))

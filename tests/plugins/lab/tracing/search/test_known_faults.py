"""Faults that kernels of real systems have are reached from default ranges, directly and behind a layer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import special

from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair_lab.tracing.search.methods.all_methods import METHODS
from conrepair_lab.tracing.search.objectives import guide, relative
from conrepair_lab.tracing.search.search import run
from conrepair_lab.tracing.search.space import space_of

Function = Callable[[np.ndarray], np.ndarray]


def _elu(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0, x, np.exp(np.minimum(x, 0)) - 1)


def _tanh(x: np.ndarray) -> np.ndarray:
    return (np.exp(2 * x) - 1) / (np.exp(2 * x) + 1)


FAULTS: dict[str, tuple[Function, Function]] = {
    "tanh of tiny numbers": (_tanh, np.tanh),
    "atanh of tiny numbers": (lambda x: np.log((1 + x) / (1 - x)) / 2, np.arctanh),
    "erf of tiny numbers": (lambda x: 1 - special.erfc(x), special.erf),
    "elu near zero": (_elu, lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0)))),
    "softplus of -13": (lambda x: np.log(1 + np.exp(3 * x)), lambda x: np.logaddexp(0, 3 * x)),
    "sigmoid of -13": (lambda x: special.expit(np.maximum(3 * x, -12.5)), lambda x: special.expit(3 * x)),
    "asinh of large negative numbers": (lambda x: np.log(x + np.sqrt(x * x + 1)), np.arcsinh),
    "variance of nearly equal numbers": (
        lambda x: (x * x).mean(-1, keepdims=True) - x.mean(-1, keepdims=True) ** 2,
        lambda x: x.var(-1, keepdims=True),
    ),
}


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_reached(name: str, behind: bool) -> None:
    faulty, right = FAULTS[name]
    generator = np.random.default_rng(5)
    alike = 1 / 16 + generator.normal(0, 1e-4, (16, 8))  # of which nearly the same comes if the same goes in
    layer = alike if "variance" in name else generator.normal(0, 1 / 4, (16, 8))
    space = space_of([TensorSpec("x", (1, 16), "float32")])
    worst, answered = 0.0, list[list[np.ndarray]]()

    def evaluate(points: np.ndarray) -> np.ndarray:
        nonlocal worst
        scores = []
        answered.clear()
        for point in points:
            x = space.feeds(point)["x"]
            x = x @ layer.astype(np.float32) if behind else x
            with np.errstate(all="ignore"):
                sides = [faulty(x)], [right(x.astype(np.float64))]
            worst = max(worst, relative(*sides).max(initial=0))
            answered.append(sides[0])
            scores.append(guide(*sides))
        return np.array(scores)

    run(METHODS["mega"](space, 1000, 0, lambda points: answered), evaluate, 1000, enough=-2)
    assert worst > 5e-3

"""The exact functions against 60 digits of mpmath, over all magnitudes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from conrepair.ground.metrics.ulps import ulps
from conrepair.ground.operators.all_operators import ROUNDED

FUNCTIONS: Any = {name: item.value for name, item in ROUNDED.items()}

mp = pytest.importorskip("mpmath").mp
Number = Any


def _softplus(x: Number) -> Number:
    return mp.log1p(mp.exp(x)) if x < 0 else x + mp.log1p(mp.exp(-x))


def _sigmoid(x: Number) -> Number:
    return 1 / (1 + mp.exp(-x))


def _elu(x: Number) -> Number:
    return x if x > 0 else mp.expm1(x)


TRUE: dict[str, Callable[[Number], Number]] = {
    "Softplus": _softplus,
    "Mish": lambda x: x * mp.tanh(_softplus(x)),
    "Elu": _elu,
    "Celu": _elu,
    "Selu": lambda x: (
        mp.mpf(1.05070102214813232421875) * (x if x > 0 else mp.mpf(1.67326319217681884765625) * mp.expm1(x))
    ),
    "Gelu": lambda x: x * mp.erfc(-x / mp.sqrt(2)) / 2,
    "Swish": lambda x: x * _sigmoid(x),
    "HardSwish": lambda x: x * max(mp.mpf(0), min(mp.mpf(6), x + 3)) / 6,
    "Softsign": lambda x: x / (1 + abs(x)),
    "Sigmoid": _sigmoid,
    "Reciprocal": lambda x: 1 / x,
    **{
        name: getattr(mp, name.lower())
        for name in (
            *("Erf", "Exp", "Log", "Sqrt", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan"),
            *("Sinh", "Cosh", "Tanh", "Asinh", "Acosh", "Atanh"),
        )
    },
}
DOMAINS = {"Log": (0, np.inf), "Sqrt": (0, np.inf), "Asin": (-1, 1), "Acos": (-1, 1), "Atanh": (-1, 1)}
DOMAINS |= {"Acosh": (1, np.inf), "Exp": (-745, 709), "Sinh": (-709, 709), "Cosh": (-709, 709), "Gelu": (-38, 38)}
DOMAINS |= {"Erf": (-30, 30)}


def _double(value: Number) -> np.longdouble:
    """An mpmath number, to more digits than float64 has."""
    high = float(value)
    return np.longdouble(high) + np.longdouble(float(value - mp.mpf(high)))


def _numbers(generator: np.random.Generator) -> np.ndarray:
    small = 10.0 ** generator.uniform(-300, 2.8, 40)
    near = 10.0 ** generator.uniform(-15, 0, 20)
    return np.concatenate(
        [
            small,
            -small,
            1 - near,
            near - 1,
            1 + near,
            generator.uniform(-40, 40, 60),
            generator.uniform(-745, -20, 20),
        ]
    )


@pytest.mark.parametrize("name", TRUE)
def test_a_function_is_right_to_a_few_units_everywhere(name: str) -> None:
    low, high = DOMAINS.get(name, (-np.inf, np.inf))
    x = _numbers(np.random.default_rng(3))
    x = x[(x > low) & (x < high)]
    with np.errstate(all="ignore"), mp.workprec(1100):
        truth = np.array([_double(TRUE[name](mp.mpf(float(value)))) for value in x])
        assert ulps(np.asarray(FUNCTIONS[name](x)), truth).max() < 6


@pytest.mark.parametrize("attribute", [0.3, 1.7, -0.6])
def test_attributes_are_read(attribute: float) -> None:
    x = _numbers(np.random.default_rng(4))
    with np.errstate(all="ignore"), mp.workprec(1100):
        slope = mp.mpf(attribute)
        for name, true in (
            ("Elu", lambda x: x if x > 0 else slope * mp.expm1(x)),
            ("Celu", lambda x: max(mp.mpf(0), x) + min(mp.mpf(0), slope * mp.expm1(x / slope))),
            ("Swish", lambda x: x * _sigmoid(slope * x)),
        ):
            given = x[np.abs(x) < 200]
            truth = np.array([_double(true(mp.mpf(float(value)))) for value in given])
            assert ulps(np.asarray(FUNCTIONS[name](given, alpha=attribute)), truth).max() < 4, name


def test_rows_are_right_where_one_element_is_nearly_all() -> None:
    generator = np.random.default_rng(5)
    with mp.workprec(3000):
        for _ in range(40):
            row = generator.normal(size=4) * 10.0 ** generator.uniform(-3, 2.2)
            numbers = [mp.mpf(float(value)) for value in row]
            total = mp.log(mp.fsum(map(mp.exp, numbers)))
            for name, truth in (
                ("LogSoftmax", [value - total for value in numbers]),
                ("Softmax", [mp.exp(value - total) for value in numbers]),
            ):
                assert ulps(FUNCTIONS[name](row), np.array([_double(value) for value in truth])).max() < 2

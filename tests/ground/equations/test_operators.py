"""Operators and their equations are the same functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conrepair.formats.editing.lowering import CHANNELLED
from conrepair.ground.equations.arrays import value_of
from conrepair.ground.equations.expression import names_in, parse
from conrepair.ground.equations.operators import EQUATIONS, SOFT_SHRINK, TANH_GELU
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.graph.operators import OPERATORS
from conrepair.ground.operators import rows
from conrepair.ground.operators.all_operators import ROUNDED

RIGHT: Mapping[str, Callable[..., Any]] = {
    **{name: item.value for name, item in ROUNDED.items()},
    "BatchNormalization": lambda x, scale, bias, mean, variance, epsilon: (
        (x - mean) / np.sqrt(variance + epsilon) * scale + bias
    ),
    "Clip": lambda x, **bounds: np.clip(x, bounds["min"], bounds["max"]),
    "DequantizeLinear": lambda x, scale: x * scale,
    "Neg": np.negative,
    "PRelu": lambda x, slope: np.where(x < 0, x * slope, x),
    "QuantizeLinear": lambda x, scale: np.clip(np.rint(x / scale), -128, 127),
    "Relu": lambda x: np.maximum(x, 0),
}
GIVEN = {
    "min": -0.5, "max": 2.0, "scale": 0.5, "slope": 0.25, "bias": 0.125, "mean": 0.75, "variance": 3.0, "lambd": 0.5,
}  # fmt: skip
ROWS = {"LogSoftmax", "LayerNormalization", "InstanceNormalization"}


def of(text: str, x: Array, known: Mapping[str, Any]) -> Array:
    """What an equation computes."""
    return value_of(text, {"x": x, **known})


VARIANTS: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    **{name: (name, text, {}) for name, text in EQUATIONS.items() if name not in ROWS},
    "Gelu by tanh": ("Gelu", TANH_GELU, {"approximate": "tanh"}),
    "Shrink, soft": ("Shrink", SOFT_SHRINK, {"bias": 0.5}),
}


@pytest.mark.parametrize("name", VARIANTS)
@settings(max_examples=25)
@given(x=arrays.arrays(np.float64, 8, elements=st.floats(width=32, allow_nan=True, allow_infinity=True)))
def test_an_equation_is_its_operator(name: str, x: Array) -> None:
    operator, text, said = VARIANTS[name]
    table = OPERATORS[operator]
    attributes = {**{key: value for key, value in table.attributes.items() if value is not None}, **said}
    known = {**GIVEN, **attributes}
    own = {key: known[key] for key in names_in(parse(text)) if key != "x"}
    if operator in ROUNDED:
        own = {key: item for key, item in attributes.items() if item != "none"}
    with np.errstate(all="ignore"):
        right, found = RIGHT[operator](x, **own), of(text, x, known)
        loose = 1e-6 if name == "Erf" else 1e-9 * (1 + np.where(np.isfinite(x), np.abs(x), 0))
        same = (found == right) | (np.isnan(found) & np.isnan(right)) | (np.abs(found - right) <= loose)
    assert same.all(), (x[~same], found[~same], right[~same])


@settings(max_examples=25)
@given(x=arrays.arrays(np.float64, (3, 5), elements=st.floats(-50, 50, width=32)))
def test_an_equation_of_rows_is_its_operator(x: Array) -> None:
    centred, known = x - x.mean(-1, keepdims=True), {"scale": 0.5, "bias": 0.125, "epsilon": 1e-5}
    right = centred / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * 0.5 + 0.125
    for name in ("LayerNormalization", "InstanceNormalization"):
        np.testing.assert_allclose(of(EQUATIONS[name], x, known), right, atol=1e-9)
    with np.errstate(divide="ignore"):
        found = np.exp(of(EQUATIONS["LogSoftmax"], x, known))
    np.testing.assert_allclose(found, rows.softmax(x), atol=1e-12)


def test_names_of_equations_are_of_the_vocabulary() -> None:
    for operator, text in EQUATIONS.items():
        known = {"x", *OPERATORS[operator].attributes, *OPERATORS[operator].parameters}
        assert set(names_in(parse(text))) <= known
    assert {"BatchNormalization", "InstanceNormalization"} <= CHANNELLED & EQUATIONS.keys()

"""Factors of one change nothing, others disturb each real result that hangs on an input."""

from __future__ import annotations

import numpy as np
from fuzz_cases import case

from conrepair.verdicts.truth.disturbed import with_noise
from conrepair_lab.cases.case import Case
from conrepair_lab.fuzz.looking import other_answers

X = np.array([0.5, -1.25, 2.0], np.float32)
MADE = case(
    "g (float[3] x) => (float[3] y, float[3] z) { c = Constant <value_float = 2.0> () y = Mul (x, c) z = Exp (y) }",
    x=X,
)


def test_ones_change_nothing_and_others_do() -> None:
    model, ones = with_noise(MADE.model)
    assert [array.shape for array in ones.values()] == [(3,), (3,)]  # the constant has none
    plain, same = other_answers(MADE), other_answers(Case.of(model, {**MADE.inputs, **ones}))
    doubled = other_answers(Case.of(model, {**MADE.inputs, **{name: 2 * array for name, array in ones.items()}}))
    assert plain is not None
    assert same is not None
    assert doubled is not None
    np.testing.assert_array_equal(same["z"], plain["z"])
    np.testing.assert_array_equal(doubled["y"], 4 * X)
    np.testing.assert_allclose(doubled["z"], 2 * np.exp(4 * X), rtol=1e-6)


def test_bfloat16_is_disturbed_by_its_own_last_place() -> None:
    text = "g (float[3] x) => (bfloat16[3] n, float[3] y) { n = Cast <to = 16> (x) y = Cast <to = 1> (n) }"
    model, ones = with_noise(case(text, x=X).model)
    assert [array.dtype.name for array in ones.values()] == ["bfloat16", "float32"]
    first = next(iter(ones))
    found = other_answers(Case.of(model, {"x": X, **ones, first: 2 * ones[first]}))
    assert found is not None
    np.testing.assert_array_equal(found["y"], 2 * X)

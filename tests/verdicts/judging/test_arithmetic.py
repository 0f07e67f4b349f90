"""Rounding to the numbers of other arithmetics."""

from __future__ import annotations

from typing import get_args

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from conrepair.verdicts.evaluate.tolerance import ArithmeticName
from conrepair.verdicts.judging.arithmetic import ARITHMETICS, FLOAT32, LADDER, arithmetic_of, tried

FLOATS = arrays(np.float32, 16, elements=st.floats(-(2.0**100), 2.0**100, width=32))


@given(FLOATS)
def test_tf32_is_the_nearest_number_of_eleven_bits(values: np.ndarray) -> None:
    """float16 has as many bits, over a smaller range: within it both round alike."""
    rounded = ARITHMETICS["tf32"].operands(values)
    inside = (np.abs(values) > 2.0**-14) & (np.abs(values) < 60000)
    assert np.array_equal(rounded[inside], values[inside].astype(np.float16).astype(np.float32))
    normal = values[np.abs(values) >= 2.0**-126].astype(np.float64)
    assert np.all(np.abs(rounded[np.abs(values) >= 2.0**-126] - normal) <= 2.0**-11 * np.abs(normal))
    assert np.array_equal(ARITHMETICS["tf32"].results(values), values)


@given(FLOATS)
def test_types_round_as_theirs(values: np.ndarray) -> None:
    assert np.array_equal(
        ARITHMETICS["bfloat16"].results(values), values.astype(ml_dtypes.bfloat16).astype(np.float32)
    )


@given(FLOATS)
@example(np.array([0, 1.42e-43], np.float32))
def test_eight_bits_are_as_many_steps(values: np.ndarray) -> None:
    rounded = ARITHMETICS["int8"].results(values)
    reach = max(float(values.max()), 0.0) - min(float(values.min()), 0.0)
    assert np.abs(rounded.astype(np.float64) - values).max() <= reach / 255 * 0.51
    assert np.unique(rounded).size <= 256


def test_subnormal_numbers_are_flushed() -> None:
    values = np.array([1e-39, -1e-39, 2.0**-126, 1.0], np.float32)
    assert ARITHMETICS["flushed"].results(values).tolist() == [0.0, -0.0, 2.0**-126, 1.0]


def test_whole_numbers_wrap() -> None:
    values = np.array([2**31, 2**31 - 1, -1], np.int64)
    assert ARITHMETICS["int32"].results(values).tolist() == [-(2**31), 2**31 - 1, -1]


@pytest.mark.parametrize("name", ["float16", "bfloat16", "tf32", "int8"])
def test_the_unit_is_what_rounding_may_change(name: str) -> None:
    item = ARITHMETICS[name]
    values = np.linspace(1, 2, 4097, dtype=np.float32)
    worst = float(np.abs(item.operands(values) - values).max())
    assert 0.4 * item.unit <= worst / (2 if name == "int8" else 1) <= item.unit


def test_options_have_the_same_names() -> None:
    assert get_args(ArithmeticName) == tuple(ARITHMETICS)


def test_what_is_tried() -> None:
    assert tried("") == tuple(item.name for item in LADDER)
    assert tried("bfloat16") == ("bfloat16",)
    assert tried("float32") == ()
    assert arithmetic_of("float64") is FLOAT32

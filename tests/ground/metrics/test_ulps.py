from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conrepair.ground.metrics.ulps import grid_of, ulps

TYPES = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
finite = st.floats(allow_nan=False, allow_infinity=False)


def _one(value: float, dtype: object = np.float32) -> np.ndarray:
    return np.array([value]).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
@given(st.floats(-1e4, 1e4, allow_nan=False))
@settings(max_examples=60, deadline=None)
def test_a_rounded_number_is_half_a_unit_away_at_the_most_and_its_neighbour_not_nearer(
    dtype: type, value: float
) -> None:
    truth = np.array([value])
    rounded = truth.astype(dtype)
    distance = ulps(rounded, truth)[0]
    assert distance <= 0.5
    if dtype != ml_dtypes.bfloat16:
        neighbour = np.nextafter(rounded, dtype(np.inf))
        assert ulps(neighbour, truth)[0] >= distance or distance == 0.5


@given(finite)
@settings(max_examples=100, deadline=None)
def test_the_unit_is_the_distance_between_neighbours(value: float) -> None:
    with np.errstate(over="ignore"):
        number = np.float32(value)
    if abs(number) < 2.0**127:
        step = abs(float(np.spacing(np.abs(number))))
        assert grid_of(np.float32).ulp(np.array([float(number)]))[0] == step


def test_what_stands_at_the_ends_of_a_type() -> None:
    tiny, largest = 2.0**-149, float(np.finfo(np.float32).max)
    assert ulps(_one(tiny), _one(0.0, float))[0] == 1
    assert ulps(_one(-0.0), _one(0.0, float))[0] == 0
    assert ulps(_one(0.0), _one(2.0**-130, float))[0] == 2.0**19
    assert ulps(_one(np.inf), _one(largest, float))[0] == 1
    assert ulps(_one(np.inf), _one(1e300, float))[0] == 0
    assert ulps(_one(largest), _one(1e300, float))[0] == 1
    assert ulps(_one(largest), _one(np.inf, float))[0] == np.inf
    assert ulps(_one(np.nan), _one(1.0, float))[0] == np.inf
    assert ulps(_one(np.nan), _one(np.nan, float))[0] == 0
    assert ulps(_one(1.0), _one(np.nan, float))[0] == np.inf

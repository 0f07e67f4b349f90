"""Real numbers in and out of quantized tensors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conrepair.ground.data.stored_values import to_real, to_stored
from conrepair.ground.data.tensor_spec import Quantization, TensorSpec

COUNT = 70_000  # more than are quantized at once


@given(
    dtype=st.sampled_from(["int8", "uint8", "int16", "int32"]),
    scale=st.floats(2**-20, 2**10, width=32),
    zero_point=st.integers(-128, 127),
    seed=st.integers(0, 99),
)
def test_what_is_stored_comes_back(dtype: str, scale: float, zero_point: int, seed: int) -> None:
    spec = TensorSpec("x", ("n",), dtype, Quantization(scale, zero_point))
    # Whole numbers of more than 24 bits can't pass through float32.
    low, high = (max(np.iinfo(dtype).min, -(2**20)), min(np.iinfo(dtype).max, 2**20))
    stored = np.random.default_rng(seed).integers(low, high, 50, endpoint=True).astype(dtype)
    real = to_real(spec, stored)
    assert real.dtype == np.float32
    np.testing.assert_array_equal(to_stored(spec, real), stored)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_real_numbers_are_rounded_to_the_nearest_that_can_be_stored(dtype: type) -> None:
    spec = TensorSpec("x", (2, COUNT // 2), "int8", Quantization(0.05, 7))
    real = np.random.default_rng(0).normal(size=(2, COUNT // 2)).astype(dtype) * dtype(4)
    stored = to_stored(spec, real)
    assert (stored.dtype, stored.shape) == (np.int8, real.shape)
    ends = np.float32(0.05) * (np.array([-128, 127]) - 7)
    inside = (real > ends[0]) & (real < ends[1])
    assert 0.5 < inside.mean() < 1
    assert np.abs(to_real(spec, stored) - real)[inside].max() < 0.0251
    assert set(stored[~inside]) == {-128, 127}


def test_arrays_in_another_order() -> None:
    spec = TensorSpec("x", (3, 4), "uint8", Quantization(0.1, 3))
    real = np.arange(12, dtype=np.float32).reshape(4, 3).T
    np.testing.assert_array_equal(to_stored(spec, real), to_stored(spec, np.ascontiguousarray(real)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_scalar_gets_no_axis(dtype: type) -> None:
    assert to_stored(TensorSpec("x", (), "float32"), np.array(2.5, dtype)).shape == ()

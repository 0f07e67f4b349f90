"""Weights that went through few bits are recognised as that, and others aren't."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conrepair.diagnosis.localization.faces.numbers.grids import WeightGrid, grid_of

SHAPES = {"conv": (24, 12, 3, 3), "depthwise": (32, 1, 3, 3), "dense": (48, 256)}


def drawn(name: str, seed: int) -> np.ndarray:
    spread = np.exp(np.random.default_rng(seed + 1).normal(size=(SHAPES[name][0], *[1] * (len(SHAPES[name]) - 1))))
    return single(np.random.default_rng(seed).normal(size=SHAPES[name]) * 0.1 * spread)


def single(array: np.ndarray) -> np.ndarray:
    """As a file of single precision holds it."""
    return array.astype(np.float32).astype(np.float64)


def steps_of(rows: np.ndarray, bits: int) -> np.ndarray:
    return np.abs(rows).max(axis=-1, keepdims=True) / (2 ** (bits - 1) - 1)


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(sorted(SHAPES)), st.sampled_from([2, 3, 4, 6, 8]), st.booleans(), st.integers(0, 1000))
def test_symmetric_integers(name: str, bits: int, by_channel: bool, seed: int) -> None:
    weights = drawn(name, seed)
    rows = weights.reshape(len(weights) if by_channel else 1, -1)
    steps = steps_of(rows, bits)
    found = grid_of(weights, single(np.round(rows / steps) * steps).reshape(weights.shape))
    assert found is not None
    assert found.granularity == ("channel" if by_channel else "tensor")
    assert found.dtype == f"int{bits}"
    assert found.axis == (0 if by_channel else None)


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(sorted(SHAPES)), st.integers(0, 1000))
def test_affine_integers(name: str, seed: int) -> None:
    weights = drawn(name, seed)
    low, high = min(weights.min(), 0), max(weights.max(), 0)
    step = (high - low) / 255
    zero = np.round(-low / step)
    held = (np.clip(np.round(weights / step) + zero, 0, 255) - zero) * step
    found = grid_of(weights, single(held))
    assert found is not None
    assert found.granularity == "tensor"


@pytest.mark.parametrize("size", [32, 64, 128])
def test_groups(size: int) -> None:
    weights = drawn("dense", 5)
    rows = weights.reshape(-1, size)
    steps = steps_of(rows, 4)
    found = grid_of(weights, single(np.round(rows / steps) * steps).reshape(weights.shape))
    assert found == WeightGrid("int4", "group", 1, len(rows))


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_eight_bit_floats(dtype: str) -> None:
    weights = drawn("conv", 6)
    scale = np.abs(weights).max() / float(ml_dtypes.finfo(dtype).max)
    held = (weights / scale).astype(np.float32).astype(dtype).astype(np.float64) * scale
    assert grid_of(weights, single(held)) == WeightGrid(dtype, "tensor", None, 1)


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(sorted(SHAPES)), st.sampled_from([1e-4, 1e-3, 1e-2]), st.integers(0, 1000))
def test_noise_is_no_grid(name: str, size: float, seed: int) -> None:
    weights = drawn(name, seed)
    noise = np.random.default_rng(seed + 2).normal(size=weights.shape)
    assert grid_of(weights, single(weights * (1 + size * noise))) is None
    assert grid_of(weights, weights) is None

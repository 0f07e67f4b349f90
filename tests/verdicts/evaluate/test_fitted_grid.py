"""Scale and zero point of recorded integers, by the original's numbers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from conrepair.ground.data.stored_values import quantized
from conrepair.ground.data.tensor_spec import Quantization
from conrepair.verdicts.evaluate.fitted_grid import fitted_grid, grid_in_words

LOGITS = (np.random.default_rng(0).normal(size=(40, 10)) * 3).astype(np.float32)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("steps", [255, 256])
def test_a_softmax_has_the_range_from_0_to_1_however_wrong_it_is(dtype: str, steps: int) -> None:
    grid = Quantization(1 / steps, int(np.iinfo(dtype).min))
    right = softmax(LOGITS, axis=1)
    for given in (right, softmax(-LOGITS, axis=1), np.roll(right, 1, axis=0)):
        rounded = np.floor(given * steps)
        rounded[:, 0] += steps - rounded.sum(axis=1)  # their sum is that of the steps
        stored = (rounded + grid.zero_point).clip(np.iinfo(dtype).min, np.iinfo(dtype).max).astype(dtype)
        assert fitted_grid(right, stored) == grid
    assert grid_in_words(grid) == f"scale 1/{steps} and zero point {grid.zero_point}"


@pytest.mark.parametrize(("dtype", "scale", "zero"), [("int8", 0.11, -3), ("uint8", 0.09, 120), ("int16", 1e-3, 0)])
def test_other_numbers_lie_on_a_line(dtype: str, scale: float, zero: int) -> None:
    found = fitted_grid(LOGITS, quantized(LOGITS, Quantization(scale, zero), np.dtype(dtype)))
    assert found is not None
    assert found.zero_point == zero
    assert found.scale == pytest.approx(scale, rel=2e-3)
    assert grid_in_words(Quantization(0.0123456, 3)) == "scale 0.01235 and zero point 3"


def test_what_is_cut_off_bends_no_line() -> None:
    stored = quantized(LOGITS, Quantization(0.03, 10), np.dtype("int8"))
    assert (stored == 127).mean() > 0.1
    found = fitted_grid(LOGITS, stored)
    assert found is not None
    assert found.scale == pytest.approx(0.03, rel=0.02)


def test_integers_that_are_numbers_of_their_own_have_none() -> None:
    generator = np.random.default_rng(1)
    assert fitted_grid(LOGITS, generator.integers(-128, 127, LOGITS.shape, np.int8)) is None
    assert fitted_grid(LOGITS, np.argsort(LOGITS)) is None
    assert fitted_grid(LOGITS, np.zeros(LOGITS.shape, np.int8)) is None
    assert fitted_grid(LOGITS.astype(np.int32), LOGITS.astype(np.int8)) is None
    assert fitted_grid(LOGITS, LOGITS.astype(np.int8)[:, :5]) is None

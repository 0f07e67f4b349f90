"""Numbers disturbed as by rounding."""

from __future__ import annotations

import numpy as np
import pytest

from conrepair.verdicts.judging.arithmetic import as_rounding, shaken
from conrepair.verdicts.judging.numbers import DISTURBANCE


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(), (7,), (3, 4, 5), (1 << 19, 2)])
def test_a_disturbance_is_of_eight_last_places_up_or_down(dtype: type, shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(0).normal(size=shape).astype(dtype)
    changed = shaken(array)
    assert changed.dtype == array.dtype
    assert changed.shape == array.shape
    factor = np.asarray(changed, np.float64) / array - 1
    assert np.allclose(np.abs(factor), DISTURBANCE, rtol=0.2)
    if array.size > 9:
        assert 0.3 < np.mean(factor > 0) < 0.7
    assert np.array_equal(shaken(array), changed)
    assert not np.shares_memory(changed, array)


def test_integers_are_not_disturbed() -> None:
    whole = np.arange(5)
    assert shaken(whole) is whole


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_whole_numbers_are_not_disturbed_as_no_rounding_made_them(dtype: type) -> None:
    # A mask's ones, an id, a pixel; but large numbers are whole in every float, and zero is zero.
    array = np.array([0, 1, -3, 425, 0.5, 3e38], dtype=np.float64).clip(max=float(np.finfo(dtype).max)).astype(dtype)
    assert (shaken(array) == array).tolist()[:4] == [True] * 4
    if dtype is not np.float16:  # which doesn't hold so small a change
        assert (shaken(array) == array).tolist()[4:] == [False] * 2


def test_a_part_of_a_disturbance() -> None:
    expected, disturbed = np.float32([1.0, 2.0, np.inf, 4.0]), np.float32([1.4, 2.0, 3.0, np.nan])
    assert as_rounding(expected, disturbed).tolist() == pytest.approx([1.1, 2.0, np.inf, 4.0])
    whole = np.array([1, 2])
    assert as_rounding(np.array([1, 1]), whole) is whole

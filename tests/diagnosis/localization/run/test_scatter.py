"""A line through pairs of values, and a few pairs that show it."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from conrepair.diagnosis.localization.run.kept import Scatter
from conrepair.diagnosis.localization.run.scatter import scatter_of

DRAWN = np.random.default_rng(0).standard_normal(5000)


def found(one: npt.NDArray[np.floating], two: npt.NDArray[np.floating]) -> Scatter:
    scatter = scatter_of(one, two)
    assert scatter is not None
    return scatter


@pytest.mark.parametrize(("factor", "offset"), [(1.125, 0.0), (1.0, 0.25), (-2.0, 3.0), (1e-3, 1e3)])
def test_a_factor_and_a_shift_are_found_again(factor: float, offset: float) -> None:
    scatter = found(DRAWN, factor * DRAWN + offset)
    assert scatter.factor == pytest.approx(factor, rel=1e-9)
    assert scatter.offset == pytest.approx(offset, abs=1e-9)
    assert scatter.correlation == pytest.approx(math.copysign(1, factor), abs=1e-9)


def test_a_permutation_is_a_cloud() -> None:
    scatter = found(DRAWN, np.random.default_rng(1).permutation(DRAWN))
    assert abs(scatter.correlation) < 0.05
    assert scatter.same < 0.05


def test_pairs_are_few_ascending_and_reach_from_the_smallest_to_the_largest() -> None:
    scatter = found(DRAWN.reshape(50, 10, 10), 2 * DRAWN.reshape(50, 10, 10))
    assert 256 < len(scatter.source) == len(scatter.target) <= 512
    assert list(scatter.source) == sorted(scatter.source)
    assert [scatter.source[0], scatter.source[-1]] == pytest.approx([DRAWN.min(), DRAWN.max()], rel=1e-3)
    assert np.asarray(scatter.target) == pytest.approx(2 * np.asarray(scatter.source), rel=1e-2)


def test_values_that_are_mostly_zero_still_show_the_others() -> None:
    one = np.where(DRAWN > 1.5, DRAWN, 0)
    scatter = found(one, one + 1)
    assert sum(value > 0 for value in scatter.source) > 100


def test_the_share_of_values_that_are_the_same_is_told() -> None:
    two = DRAWN.copy()
    two[:1000] += 5
    assert found(DRAWN, two).same == pytest.approx(0.8)
    assert found(DRAWN, DRAWN).same == 1


def test_what_is_no_number_is_left_out() -> None:
    one, two = np.array([1.0, 2, 3, 4, np.nan]), np.array([2.0, 4, 6, np.inf, 1])
    scatter = found(one, two)
    assert (scatter.source, scatter.target) == ((1, 2, 3), (2, 4, 6))
    assert scatter.factor == pytest.approx(2)
    assert scatter_of(one[2:], two[2:]) is None


def test_equal_values_have_no_line() -> None:
    scatter = found(np.full(9, 2.0), np.arange(9.0))
    assert math.isnan(scatter.factor)
    assert math.isnan(scatter.correlation)
    assert scatter.same == pytest.approx(1 / 9)


def test_many_values_are_thinned_and_large_ones_do_not_overflow() -> None:
    many = np.tile(DRAWN, 1000).astype(np.float32)
    assert found(many, 3 * many).factor == pytest.approx(3, rel=1e-5)
    huge = np.array([1e300, -1e300, 2e300])
    with np.errstate(over="ignore"):
        assert math.isnan(found(huge, huge).factor)

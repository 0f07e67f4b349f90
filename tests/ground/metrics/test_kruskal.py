"""The vectorized Kruskal-Wallis test against scipy's, element by element."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from conrepair.ground.metrics import kruskal
from conrepair.ground.metrics.kruskal import kruskal_wallis


def by_scipy(groups: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    # In float64: of float32 values scipy computes the statistic in float32, too.
    columns = [group.reshape(len(group), -1).astype(np.float64) for group in groups]
    results = []
    for index in range(columns[0].shape[1]):
        samples = [column[:, index] for column in columns]
        same = len(np.unique(np.concatenate(samples))) == 1
        results.append((np.nan, np.nan) if same else tuple(scipy.stats.kruskal(*samples)))
    statistic, p = np.array(results).T
    return statistic.reshape(groups[0].shape[1:]), p.reshape(groups[0].shape[1:])


def check(groups: list[np.ndarray]) -> None:
    (statistic, p), (expected, expected_p) = kruskal_wallis(groups), by_scipy(groups)
    np.testing.assert_allclose(statistic, expected, rtol=1e-10, atol=1e-10)
    clear = ~(expected < 1e-9)  # near 0, where p falls like the root, scipy's statistic has no digits left
    np.testing.assert_allclose(p[clear], expected_p[clear], rtol=1e-10, atol=1e-10)


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.lists(st.integers(1, 20), min_size=2, max_size=4),
    values=st.sampled_from([1, 2, 3, 10, 10**6]),
    shape=st.sampled_from([(7,), (2, 3), (1, 2, 2)]),
)
def test_the_same_as_scipy(seed: int, sizes: list[int], values: int, shape: tuple[int, ...]) -> None:
    """With ties of all sorts: few values make many, one value makes nothing but ties."""
    generator = np.random.default_rng(seed)
    check([generator.integers(0, values, (size, *shape)).astype(np.float32) / 4 for size in sizes])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.uint8])
def test_types(dtype: type) -> None:
    generator = np.random.default_rng(0)
    check([(40 * generator.random((size, 30))).astype(dtype) for size in (15, 12)])


def test_activations_behind_a_rectifier() -> None:
    """Half of the values are zeros, some elements are nothing else."""
    generator = np.random.default_rng(0)
    groups = [np.maximum(generator.normal(shift, 1, (15, 8, 5, 5)), 0) for shift in (0, 0.5)]
    for group in groups:
        group[:, 0] = 0
    statistic, p = kruskal_wallis(groups)
    assert np.isnan(statistic[0]).all()
    assert np.isnan(p[0]).all()
    check(groups)


def test_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    groups = [generator.normal(size=(size, 101)) for size in (5, 6)]
    whole = kruskal_wallis(groups)
    monkeypatch.setattr(kruskal, "_CHUNK", 11 * 7)
    np.testing.assert_array_equal(kruskal_wallis(groups), whole)


def test_infinities_are_the_largest_values() -> None:
    groups = [np.array([[1.0], [np.inf], [2.0]]), np.array([[-np.inf], [0.5]])]
    check(groups)


def test_groups_that_cannot_be_compared() -> None:
    for groups in ([np.ones((2, 3))], [np.ones((2, 3)), np.ones((2, 4))], [np.ones((2, 3)), np.ones((0, 3))]):
        with pytest.raises(ValueError, match="group"):
            kruskal_wallis(groups)

"""Which tensors are found alike, by values alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from conrepair.diagnosis.localization.align.samples import Samples, compare
from conrepair.diagnosis.localization.align.similarity import Similarity
from conrepair.diagnosis.localization.numbers.pairing import EQUAL

Array = np.ndarray


def sampled(values: Sequence[Array]) -> Samples:
    named = {str(place): array for place, array in enumerate(values)}
    return Samples(list(named), named.__getitem__)


class Compared:
    """Tensors, each with each."""

    def __init__(self, source: Sequence[Array], target: Sequence[Array]) -> None:
        sides = sampled(source), sampled(target)
        self.all = [
            [compare(sides[0], row, sides[1], column, hidden=True) for column in range(len(target))]
            for row in range(len(source))
        ]
        self.error = np.array([[item.error for item in row] for row in self.all])
        self.correlation = np.array([[item.correlation for item in row] for row in self.all])


def drawn(*shape: int, seed: int = 0, count: int = 6) -> list[Array]:
    generator = np.random.default_rng(seed)
    return [generator.normal(size=shape).astype(np.float32) for _ in range(count)]


@pytest.mark.parametrize("shape", [(2, 5, 5, 5), (2, 8, 30, 40)])
def test_transposed_disturbed_and_shuffled_partners_are_found(shape: tuple[int, ...]) -> None:
    """Equal sizes, and tensors of more elements than are looked at."""
    source = drawn(*shape)
    order = [3, 0, 5, 1, 4, 2]
    noise = drawn(*shape, seed=1)
    target = [(source[row] + 1e-5 * noise[row]).transpose(0, 2, 3, 1) for row in order]
    similarity = Compared(source, target)
    assert similarity.error.argmin(0).tolist() == order
    for column, row in enumerate(order):
        assert similarity.error[row, column] == pytest.approx(1e-5, rel=0.2)
        assert similarity.correlation[row, column] > 0.9999
        layout = similarity.all[row][column].layout
        assert layout is not None
        np.testing.assert_array_equal(layout.to_target(source[row] + 1e-5 * noise[row]), target[column])
        others = np.delete(similarity.error[:, column], row)
        assert others.min() > 1


def test_a_scaled_tensor_correlates_and_is_not_equal() -> None:
    source = drawn(2, 7)
    similarity = Compared(source, [3 * item + 2 for item in source])
    assert (np.diag(similarity.correlation) > 0.9999).all()
    assert (np.diag(similarity.error) > 1).all()


def test_constants_correlate_with_nothing() -> None:
    ones = np.ones((2, 7), np.float32)
    similarity = Compared([ones, 2 * ones, *drawn(2, 7, count=1)], [3 * ones, *drawn(2, 7, count=1)])
    assert not similarity.correlation[:2].any()
    assert not similarity.correlation[:, 0].any()
    assert similarity.correlation[2, 1] > 0.9999
    assert similarity.error[0, 0] == pytest.approx(2.0)


def test_other_sizes_fit_in_no_way() -> None:
    similarity = Compared(drawn(2, 7, count=1), drawn(2, 8, count=1))
    assert similarity.all[0][0].layout is None
    assert similarity.error[0, 0] == np.inf


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_on_one_side_is_never_equal(value: float) -> None:
    [clean] = drawn(2, 7, count=1)
    broken = clean.copy()
    broken[0, 0] = value
    assert Compared([clean], [broken]).error[0, 0] == np.inf
    assert Compared([broken], [broken]).error[0, 0] < 1e-7


def test_very_small_tensors_beside_very_large_ones() -> None:
    source = [
        drawn(2, 7, seed=place, count=1)[0].astype(float) * 10.0**power for place, power in enumerate((-9, 0, 9))
    ]
    similarity = Compared(source, source)
    assert (np.diag(similarity.error) < 1e-7).all()
    assert similarity.error[~np.eye(3, dtype=bool)].min() > 0.5


def test_only_better_values_are_taken_over() -> None:
    source = drawn(3, 4, 4, count=3)
    noise = drawn(3, 4, 4, seed=1, count=3)
    similarity = Similarity(sampled(source), sampled([source[0], noise[1], source[2] + 1e-5 * noise[2]]), EQUAL)
    turned = source[1].transpose(0, 2, 1)
    similarity.improve(similarity.again(sampled([turned, source[2] + 1e-4 * noise[0]])), np.array([1, 2]))
    assert similarity.closest() == pytest.approx([0, 0, 1e-5], abs=3e-6)
    np.testing.assert_array_equal(similarity.layout(1, 1).to_target(source[1]), turned)
    assert similarity.layout(0, 0).is_plain

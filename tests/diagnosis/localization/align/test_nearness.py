"""The tensors that are found near are those that comparing each with each finds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conrepair.diagnosis.localization.align.nearness import Nearness
from conrepair.diagnosis.localization.align.samples import Samples, compare
from conrepair.diagnosis.localization.numbers.pairing import EQUAL

Array = np.ndarray
SHAPES = [(4, 6, 6), (6, 24), (144,), (3, 5), (70, 70)]


def drawn(generator: np.random.Generator, count: int) -> list[Array]:
    """Tensors of a network: some behind a mask, on an offset, of zeros, constant, or with what isn't a number."""
    found = []
    for _ in range(count):
        array = generator.normal(size=SHAPES[generator.integers(len(SHAPES))]) * 10.0 ** generator.integers(-2, 3)
        match generator.integers(8):
            case 0:
                array = np.where(generator.random(array.shape) < 0.3, -1e4, array)
            case 1:
                array = array + 1e3
            case 2:
                array = np.zeros(array.shape)
            case 3:
                array = np.full(array.shape, array.flat[0])
            case 4:
                array.flat[0] = [np.nan, np.inf][generator.integers(2)]
        found.append(array.astype(np.float32))
    return found


def changed(array: Array, generator: np.random.Generator) -> Array:
    """The same tensor, nearly: rounded, transposed, turned, or masked as it was and otherwise another."""
    array = array * (1 + 10.0 ** generator.integers(-7, -1) * generator.normal(size=array.shape)).astype(np.float32)
    match generator.integers(4):
        case 0:
            return array.T
        case 1:
            return array.reshape(-1)
        case 2:
            return np.where(array < -1e3, array, generator.normal(size=array.shape).astype(np.float32))
    return array


def samples(values: Sequence[Array]) -> Samples:
    named = {str(place): array for place, array in enumerate(values)}
    return Samples(list(named), named.__getitem__)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.booleans())
def test_the_same_pairs_as_of_all_with_all(seed: int, hidden: bool) -> None:
    generator = np.random.default_rng(seed)
    source = drawn(generator, 14)
    source += [source[place].copy() for place in generator.integers(0, 14, 3)]
    target = [changed(source[place], generator) for place in generator.integers(0, len(source), 12)]
    sides = samples(source), samples(target)
    near = Nearness(sides[0], EQUAL, hidden=hidden).pairs(sides[1])
    dense = np.array(
        [
            [compare(sides[0], row, sides[1], column, hidden=hidden).error for column in range(len(target))]
            for row in range(len(source))
        ]
    )
    found = dict(zip(zip(near.rows.tolist(), near.columns.tolist(), strict=True), near.error, strict=True))
    expected = {(int(row), int(column)) for row, column in np.argwhere(dense < EQUAL)}
    edge = {(int(row), int(column)) for row, column in np.argwhere(abs(dense / EQUAL - 1) < 1e-3)}
    assert set(found) - edge == expected - edge
    for place, error in found.items():
        assert error == pytest.approx(dense[place], abs=1e-6)
    for row, column, layout in zip(near.rows, near.columns, near.layout, strict=True):
        values, other = source[row], near.choices[layout].to_source(target[column])
        finite = np.isfinite(values) & np.isfinite(other)
        np.testing.assert_allclose(other[finite], values[finite], rtol=0.05, atol=0.05 * np.abs(values[finite]).max())


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6))
def test_the_nearest_however_far(seed: int) -> None:
    """As for networks in few bits."""
    generator = np.random.default_rng(seed)
    source = [generator.normal(size=(4, 6, 6)).astype(np.float32) for _ in range(40)]
    order = generator.permutation(40)
    target = [source[place] + 0.3 * generator.normal(size=(4, 6, 6)).astype(np.float32) for place in order]
    near = Nearness(samples(source), np.inf, hidden=False).pairs(samples(target))
    best = dict.fromkeys(range(40), (np.inf, -1))
    for row, column, error in zip(near.rows.tolist(), near.columns.tolist(), near.error.tolist(), strict=True):
        best[column] = min(best[column], (error, row))
    assert [row for _, row in best.values()] == order.tolist()


def test_of_many_that_are_the_same_those_at_one_place_are_found() -> None:
    """A mask that each of many layers computes anew."""
    mask = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
    side = samples([mask] * 500)
    near = Nearness(side, EQUAL, hidden=True).pairs(side)
    assert set(range(500)) <= {row for row, column in zip(near.rows, near.columns, strict=True) if row == column}
    assert len(near.rows) < 500 * 200

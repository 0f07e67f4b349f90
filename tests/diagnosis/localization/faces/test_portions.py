"""Portions of a parameter, found by their numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conrepair.diagnosis.localization.faces.numbers.changed import portion_of
from conrepair.diagnosis.localization.faces.numbers.parameters import compare_parameters
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Parameter

Array = np.ndarray


def drawn(*shape: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@given(st.integers(2, 8), st.data(), st.integers(0, 2**16))
def test_each_portion_is_found_along_each_axis(count: int, data: st.DataObject, seed: int) -> None:
    axis, place = data.draw(st.integers(0, 1)), data.draw(st.integers(0, count - 1))
    shape = [6, 6]
    shape[axis] *= count
    whole = drawn(*shape, seed=seed)
    portion = np.split(whole, count, axis)[place]
    found = portion_of(whole, portion + drawn(6, 6, seed=seed + 1) * 0.01)
    assert found is not None
    assert np.array_equal(found, portion)


@pytest.mark.parametrize(
    ("whole", "given_one"),
    [
        (drawn(4, 12), drawn(4, 4, seed=2)),  # near to none
        (np.tile(drawn(4, 4), 3), drawn(4, 4)),  # near to all
        (drawn(4, 12), drawn(4, 5)),
        (drawn(8, 12), drawn(4, 4)),
        (drawn(4, 36), drawn(4, 4)),  # of nine
        (drawn(4, 4), drawn(4, 4)),
        (drawn(16), drawn(4, 4)),
    ],
    ids=["another", "alike", "no divisor", "two axes", "too many", "whole", "flat"],
)
def test_what_is_no_portion(whole: Array, given_one: Array) -> None:
    assert portion_of(whole, given_one) is None


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_portion_is_on_the_grid_of_the_whole(place: int, bits: int, signed: bool) -> None:
    """Its own largest number is no whole number of steps from the scale."""
    whole = drawn(16, 48)
    low, high = min(whole.min(), 0), whole.max()
    step, begin = (high - low) / (2**bits - 1), low
    if signed:
        step, begin = np.abs(whole).max() / (2 ** (bits - 1) - 1), 0
    rounded = (np.round((whole - begin) / step) * step + begin).astype(np.float32)
    ours = Parameter("", whole.shape, "float32", lambda: whole)
    theirs = Parameter("", (16, 16), "float32", lambda: np.split(rounded, 3, 1)[place])
    found = compare_parameters(ours, theirs)
    assert found is not None
    assert found.kind is Kind.PRECISION
    assert f"rounded to {'int' if signed else 'uint'}{bits}, one scale for the whole tensor" in found.words
    same = Parameter("", (16, 16), "float32", lambda: np.split(whole, 3, 1)[place])
    assert compare_parameters(ours, same) is None

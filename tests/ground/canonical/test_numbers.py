"""Arrays have one number where they're equal, or differ by rounding, and aren't copied to tell."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from conrepair.ground.canonical.numbers import FOLDED, Numbers, Stored
from conrepair.ground.graph.layer_graph import Parameter

Array = npt.NDArray[Any]


def drawn(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def numbers_of(*arrays: Array, roundings: float = 1.0) -> list[int]:
    numbers = Numbers()
    return [numbers.number(Stored(lambda array=array: array, roundings=roundings)) for array in arrays]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
def test_equal_ones_of_whatever_type_and_order_in_memory(dtype: Any) -> None:
    array = drawn(300, 20, dtype=dtype)
    other = np.array(array)
    other[7, 3] *= 2
    turned = np.ascontiguousarray(array.T).T
    assert numbers_of(array, array.astype(np.float64), turned, other, array.T) == [0, 0, 0, 1, 2]


def test_whole_numbers_texts_and_what_is_empty() -> None:
    whole, texts = np.arange(6), np.array(["a", "b"])
    arrays = whole, whole.astype(np.uint8), whole.astype(np.float32), texts, texts.astype(object)
    assert numbers_of(*arrays, np.zeros((0, 2)), np.zeros((0, 2), np.float16)) == [0, 0, 1, 2, 2, 3, 3]


def test_zeros_of_a_sign_and_what_is_no_number() -> None:
    array = np.array([0.0, np.nan, np.inf, 1.0])
    assert numbers_of(array, -array, np.where(array == 0, -0.0, array)) == [0, 1, 0]


def test_one_that_is_equal_goes_before_one_that_is_near() -> None:
    array = drawn(40, dtype=np.float64)
    step, numbers = 2.0**-24, Numbers()
    near, further = array * (1 + 10 * step), array * (1 + 20 * step)
    found = [numbers.number(Stored(lambda item=item: item)) for item in (array, further, near)]
    assert found == [0, 1, 2]
    folded = [numbers.number(Stored(lambda item=item: item, roundings=FOLDED)) for item in (further, near)]
    assert folded == [1, 2]
    assert numbers.number(Stored(lambda: array * (1 + 12 * step), roundings=FOLDED)) == 0
    assert numbers.rounding[0] == pytest.approx(12 * step, rel=1e-6)


@pytest.mark.parametrize("load", [Parameter.numpy, Parameter.transposed])
def test_a_parameter_is_read_once_and_none_is_copied(load: Callable[[Parameter], Array]) -> None:
    """Of 8 MB each, as they'd be mapped: two equal ones, and two that differ in a few numbers by rounding or more."""
    arrays = [drawn(2048, 2048, dtype=np.float16) for _ in range(4)]
    arrays[2][2000, 7], arrays[3][0, 0] = 3, np.nextafter(arrays[3][0, 0], np.float16(9))
    read: list[int] = []
    parameters = [
        Parameter("", (2048, 2048), "float16", lambda place=place: read.append(place) or arrays[place])  # type: ignore[func-returns-value]
        for place in range(4)
    ]
    numbers = Numbers()
    stored = [Stored(load.__get__(parameter)) for parameter in parameters for _ in range(3)]
    tracemalloc.start()
    try:
        found = [numbers.number(item) for item in stored]
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == [0] * 6 + [1] * 3 + [2] * 3
    assert most < arrays[0].nbytes
    assert [read.count(place) for place in (1, 3)] == [1, 1 + 2]  # nearness to two others is asked once each


def test_complex_numbers_are_more_than_their_real_parts() -> None:
    array = (drawn(40) + 1j * drawn(40, seed=1)).astype(np.complex64)
    assert numbers_of(array, array.conj(), array.real, array.astype(np.complex128)) == [0, 1, 2, 0]

"""Integers that are right, by scales and zero points that aren't."""

from __future__ import annotations

import numpy as np
import pytest

from conrepair.diagnosis.localization.faces.numbers.own_grid import other_grid, within_steps
from conrepair.diagnosis.localization.judge.quantization import rounding_error
from conrepair.ground.graph.layer_graph import Parameter

ROWS, COLUMNS, BITS = 32, 12, 8
WEIGHT = np.random.default_rng(0).normal(size=(ROWS, COLUMNS)) * np.linspace(0.5, 2, COLUMNS)


def _held(size: int, bits: int = BITS) -> tuple[np.ndarray, np.ndarray]:
    """Integers and scales, [blocks, 1, columns], of a symmetric grid."""
    blocks = WEIGHT.reshape(-1, size, COLUMNS)
    scales = np.abs(blocks).max(axis=1, keepdims=True) / (2 ** (bits - 1) - 1)
    return np.rint(blocks / scales), scales


def _parameter(values: np.ndarray, scales: np.ndarray, size: int, bits: int = BITS) -> Parameter:
    flat = tuple(map(float, scales.reshape(-1)))
    blocks = (size, 1) if size < ROWS else ()
    return Parameter("w", WEIGHT.shape, "int8", lambda: values, bits, flat, blocks=blocks)


@pytest.mark.parametrize("size", [ROWS, 16])
@pytest.mark.parametrize("bits", [4, 8])
def test_the_nearest_numbers_are_right(size: int, bits: int) -> None:
    integers, scales = _held(size, bits)
    values = (integers * scales).reshape(WEIGHT.shape)
    parameter = _parameter(values, scales, size, bits)
    assert within_steps(WEIGHT, values, parameter)
    error = np.linalg.norm(WEIGHT - values) / np.linalg.norm(WEIGHT)
    assert error == pytest.approx(rounding_error(parameter, WEIGHT), rel=0.15)


@pytest.mark.parametrize("size", [ROWS, 16])
def test_scales_in_another_order_are_told(size: int) -> None:
    integers, scales = _held(size)
    wrong = np.random.default_rng(1).permutation(scales.reshape(-1)).reshape(scales.shape)
    values = (integers * wrong).reshape(WEIGHT.shape)
    parameter = _parameter(values, wrong, size)
    assert not within_steps(WEIGHT, values, parameter)
    words = other_grid(WEIGHT, values, parameter)
    assert words is not None
    assert "in another order" in words


def test_other_zero_points_of_blocks_are_told() -> None:
    integers, scales = _held(16)
    shifts = np.random.default_rng(2).integers(-3, 4, scales.shape)
    values = ((integers + shifts) * scales).reshape(WEIGHT.shape)
    words = other_grid(WEIGHT, values, _parameter(values, scales, 16))
    assert words == "shifted by -3 to +3 quantization steps, as by another zero point"


def test_a_scale_that_is_wrong_explains_no_more_than_its_bits_allow() -> None:
    integers, scales = _held(ROWS)
    values = (integers * scales).reshape(WEIGHT.shape)
    wide = _parameter(values, scales * 50, ROWS)
    assert rounding_error(wide, WEIGHT) == pytest.approx(rounding_error(_parameter(values, scales, ROWS), WEIGHT))

"""Outputs that hold numbers of several sizes: each slice is as wrong as it is, not as the whole."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.metrics.slices import errors_by_axis
from conrepair.verdicts.evaluate.compare import ComparedOutputs, compare_outputs
from conrepair.verdicts.evaluate.run import HeldRun
from conrepair.verdicts.evaluate.slices import WrongSlices
from conrepair.verdicts.evaluate.tolerance import Tolerance
from conrepair.verdicts.evaluate.verdict import Verdict
from conrepair.verdicts.judging.floor import By, Floor

SAMPLES = 16
EPSILON = 2.0**-23
NUMBERS = np.random.default_rng(0)


def run(array: np.ndarray, name: str = "run", *, exact: bool = False, precision: str = "float32") -> HeldRun:
    spec = TensorSpec("y", ("batch", *array.shape[1:]), "float32")
    return HeldRun(
        name=name,
        outputs=(spec,),
        folder=Path(),
        count=len(array),
        operators=20,
        exact=exact,
        precision=precision,
        held={"y": array.astype(np.float32)},
    )


def rounded(array: np.ndarray, scale: np.ndarray | float = 1.0) -> np.ndarray:
    """The same with other roundings: of each value, or of larger ones that it's what is left of."""
    return array * (1 + 4 * EPSILON * NUMBERS.normal(size=array.shape)) + 2 * EPSILON * scale * NUMBERS.normal(
        size=array.shape
    ) * (np.asarray(scale) != 1.0)


def compared(
    reference: np.ndarray,
    candidate: np.ndarray,
    scale: np.ndarray | float = 1.0,
    *,
    measured: bool = True,
    **more: str,
) -> ComparedOutputs:
    """Judge by two measurements of rounding, or by none."""
    others = [run(rounded(reference, scale), "second", exact=True), run(rounded(reference, scale), "rounded")]
    second, shaken = others if measured else (None, None)
    return compare_outputs(run(reference), run(candidate, **more), Tolerance(), second_opinion=second, rounded=shaken)


def boxes() -> np.ndarray:
    """Four columns of pixels beside eight of scores."""
    values = NUMBERS.uniform(0.1, 1, size=(SAMPLES, 12))
    values[:, :4] *= 600
    return values


@pytest.mark.parametrize("factor", [1.002, 0.98, 1.5])
def test_a_column_that_the_whole_hides(factor: float) -> None:
    values = boxes()
    values[:, :4] *= 1e4
    wrong = rounded(values)
    wrong[:, [5, 7]] *= factor
    result = compared(values, wrong)
    assert result.verdict is Verdict.FAULTY
    assert result.reason.startswith("columns 5 and 7 of `y` are off by up to ")
    assert result.outputs[0].hidden == pytest.approx(abs(factor - 1), rel=0.01)
    assert result.outputs[0].decisive == result.outputs[0].hidden


@pytest.mark.parametrize("shape", [(6, 5, 4), (6, 2, 3, 3)])
def test_each_axis_has_slices(shape: tuple[int, ...]) -> None:
    values = NUMBERS.normal(size=(SAMPLES, *shape))
    values[:, 0] *= 1e7
    wrong = rounded(values)
    wrong[:, 3] *= 1.01
    result = compared(values, wrong)
    assert result.verdict is Verdict.FAULTY
    assert "place 3 along axis 1 of `y` is off by 1.0 %" in result.reason


@pytest.mark.parametrize("seed", range(10))
def test_right_ones_are_right(seed: int) -> None:
    generator = np.random.default_rng(seed)
    values = generator.normal(size=(SAMPLES, 30)) * 10.0 ** generator.uniform(-8, 7, size=30)
    assert compared(values, rounded(values)).verdict.is_right


@pytest.mark.parametrize("seed", range(10))
def test_what_is_left_of_large_numbers_has_their_rounding(seed: int) -> None:
    generator = np.random.default_rng(seed)
    values = generator.normal(size=(SAMPLES, 12))
    values[:, 0] *= 1e4
    scale = np.ones(12)
    scale[4:8] = 1e4  # that were taken from one another
    assert compared(values, rounded(values, scale), scale).verdict.is_right


@pytest.mark.parametrize("measured", [True, False])
def test_zeros_and_tails_of_functions_are_no_fault(measured: bool) -> None:
    values = boxes()
    values[:, 4:] *= 1e-7
    values[:, 9] = 0
    tails = rounded(values) + np.where(np.arange(12) < 4, 0.0, EPSILON / 4)  # sigmoids, to as many digits as of 1
    assert compared(values, tails, measured=measured).verdict.is_right


def test_nothing_is_said_where_rounding_was_not_measured() -> None:
    values = boxes()
    values[:, :4] *= 1e4
    wrong = values.copy()
    wrong[:, 5] *= 1.02
    result = compared(values, wrong, measured=False)
    assert (result.verdict.is_right, result.open) == (True, True)


def test_half_precision_rounds_slices_too() -> None:
    values = boxes()
    copy = values * (1 + 2.0**-10 * NUMBERS.normal(size=values.shape))
    assert compared(values, copy, precision="float16").verdict is Verdict.NOISE
    copy[:, 5] *= 1.6
    assert compared(values, copy, precision="float16").verdict is Verdict.FAULTY


def test_tolerances_that_were_given_decide() -> None:
    values = boxes() * 1e-3
    values[:, :4] *= 1e4
    wrong = values.copy()
    wrong[:, 5] *= 1.02
    outputs = [run(values, "second", exact=True), run(values, "rounded")]
    for atol, right in ((1e-3, True), (1e-9, False)):
        result = compare_outputs(
            run(values), run(wrong), Tolerance.of(atol=atol), second_opinion=outputs[0], rounded=outputs[1]
        )
        assert result.verdict.is_right is right


def test_norms_by_axis() -> None:
    one, two, other = (NUMBERS.normal(size=(3, 4, 1, 5)) for _ in range(3))
    two[0, 0, 0, 0] = np.nan  # of which nothing is told
    rows, columns = errors_by_axis(one, two, {"second": other})
    assert (rows.axis, columns.axis, rows.count, columns.count) == (1, 3, 15, 12)
    known = np.isfinite(two)
    for axis, found in ((1, rows), (3, columns)):
        rest = tuple(item for item in range(4) if item != axis)
        assert np.allclose(found.reference, np.sqrt(np.sum(one**2, axis=rest, where=known)))
        assert np.allclose(found.error, np.sqrt(np.sum((two - one) ** 2, axis=rest, where=known)))
        squares = np.where(known, (other - one) ** 2, 0)
        norms, weights = found.others["second"]
        assert np.allclose(norms, np.sqrt(squares.sum(axis=rest)))
        assert np.allclose(weights, squares.sum(axis=rest) / squares.max(axis=rest))


def in_eight_bits(array: np.ndarray) -> np.ndarray:
    """As one grid of 255 steps holds it."""
    low, high = min(array.min(), 0.0), array.max()
    step = (high - low) / 255
    return np.rint(array / step) * step


def quantized(reference: np.ndarray, candidate: np.ndarray) -> ComparedOutputs:
    given = dataclasses.replace(run(candidate, "int8"), quantized=True)
    return compare_outputs(run(reference), given, Tolerance())


@pytest.mark.parametrize("axis", [1, 2])
def test_scores_that_a_grid_of_boxes_makes_constant_are_told(axis: int) -> None:
    values = np.moveaxis(NUMBERS.uniform(0.05, 1, size=(SAMPLES, 6, 40)), 1, axis)
    values *= np.moveaxis(np.array([640.0] * 4 + [1.0] * 2).reshape(1, 6, 1), 1, axis)
    found = quantized(values, in_eight_bits(values))
    assert found.verdict is Verdict.FAULTY
    assert "4 and 5" in found.reason
    assert "became constant: the quantization step is 2.51, for values up to 639" in found.reason
    assert "Concat" in found.reason


def test_scores_with_a_grid_of_their_own_are_right() -> None:
    values = NUMBERS.uniform(0.05, 1, size=(SAMPLES, 6, 40))
    values[:, :4] *= 640
    given = np.concatenate([in_eight_bits(values[:, :4]), in_eight_bits(values[:, 4:])], 1)
    assert quantized(values, given).verdict is Verdict.QUANTIZED


@pytest.mark.parametrize("kind", ["logits", "features", "sigmoids", "softmax"])
def test_channels_of_one_sort_are_right_though_some_are_lost(kind: str) -> None:
    rows = NUMBERS.normal(size=(SAMPLES, 256))
    values = {
        "logits": rows * 5,
        "features": np.maximum(rows * np.exp(NUMBERS.normal(size=256)), 0) * np.where(np.arange(256) < 3, 1e-3, 1),
        "sigmoids": 1 / (1 + np.exp(-rows + 4 * NUMBERS.normal(size=256))).reshape(2, 8, 256),
        "softmax": np.exp(4 * rows) / np.exp(4 * rows).sum(1, keepdims=True),
    }[kind]
    given = np.rint(values * 255) / 255 if kind == "softmax" else in_eight_bits(values)
    found = quantized(values, given)
    assert found.verdict is Verdict.QUANTIZED
    assert any("became constant" in note for note in found.outputs[0].notes) is (kind in {"features", "sigmoids"})


def test_all_columns_are_not_listed() -> None:
    wrong = WrongSlices(1, (0, 1, 2), 0.5, Floor(1e-6, By.OPERATORS), certain=True)
    assert wrong.words("y", [0, 1], size=3).startswith("all 3 columns of `y` are off by up to 50 %")
    assert wrong.words("y", [0, 1], size=4).startswith("columns 0, 1 and 2 of `y` are off by up to 50 %")
    assert wrong.words("y", [0, 1]).startswith("columns 0, 1 and 2 of `y`")
    alone = WrongSlices(1, (0,), 0.5, Floor(1e-6, By.OPERATORS), certain=True)
    assert alone.words("y", [0, 1], size=1).startswith("column 0 of `y` is off by 50 %")

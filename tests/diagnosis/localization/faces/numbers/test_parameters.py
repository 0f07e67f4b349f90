"""How a changed tensor is called, for every way that conversions change one."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from conrepair.diagnosis.localization.faces.numbers.parameters import compare_parameters, difference
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Parameter

Array = np.ndarray

KERNEL = np.random.default_rng(0).normal(size=(6, 5, 3, 3)).astype(np.float32)
SQUARE = np.random.default_rng(1).normal(size=(40, 40)).astype(np.float32)
VECTOR = np.random.default_rng(2).uniform(0.3, 4, 30).astype(np.float32)
TABLE = np.random.default_rng(3).normal(size=(200, 16)).astype(np.float32)
SMALL = 0.2
EVERY_NINTH = np.arange(1600).reshape(40, 40) % 9 == 0


WITH_ZEROS = np.where(np.arange(len(VECTOR)) % 7, VECTOR, 0).astype(np.float32)  # of channels that nothing reaches


def levels(array: Array, bits: int) -> Array:
    step = np.abs(array).max() / (2 ** (bits - 1) - 1)
    return (np.round(array / step) * step).astype(np.float32)


def with_slices(array: Array, axis: int, places: list[int], change: Callable[[Array], Array]) -> Array:
    result = np.moveaxis(array.copy(), axis, 0)
    result[places] = change(result[places])
    return np.moveaxis(result, 0, axis)


def noise(array: Array, scale: float = 0.1) -> Array:
    return (array + scale * np.random.default_rng(4).normal(size=array.shape)).astype(np.float32)


CASES: dict[str, tuple[Array, Array, Kind, str]] = {
    "scaled": (KERNEL, KERNEL * 2.5, Kind.PARAMETERS, "scaled by 2.5"),
    "scaled by little": (KERNEL, KERNEL * 1.001, Kind.PARAMETERS, "scaled by 1.001"),
    "negated": (KERNEL, -KERNEL, Kind.PARAMETERS, "negated"),
    "zero": (KERNEL, 0 * KERNEL, Kind.PARAMETERS, "zero everywhere"),
    "constant": (VECTOR, np.ones_like(VECTOR), Kind.PARAMETERS, "1 everywhere, as if never loaded"),
    "root": (VECTOR, np.sqrt(VECTOR), Kind.PARAMETERS, "the square root of what it was"),
    "root, of zeros too": (WITH_ZEROS, np.sqrt(WITH_ZEROS), Kind.PARAMETERS, "the square root of what it was"),
    "square": (VECTOR, VECTOR**2, Kind.PARAMETERS, "the square of what it was"),
    "shifted": (VECTOR, VECTOR + 0.5, Kind.PARAMETERS, "shifted by 0.5"),
    "transposed": (SQUARE, SQUARE.T, Kind.PARAMETERS, "transposed (axes [1, 0])"),
    "transposed kernel": (KERNEL, KERNEL.transpose(0, 1, 3, 2), Kind.PARAMETERS, "transposed (axes [0, 1, 3, 2])"),
    "flipped": (KERNEL, KERNEL[:, :, ::-1, ::-1], Kind.PARAMETERS, "flipped along the kernel's axes"),
    "table moved": (TABLE, np.roll(TABLE, 1, 0), Kind.PARAMETERS, "shifted by +1 along axis 0"),
    "table moved back": (TABLE, np.roll(TABLE, -1, 0), Kind.PARAMETERS, "shifted by -1 along axis 0"),
    "left to right": (
        KERNEL, KERNEL[:, :, :, ::-1], Kind.PARAMETERS, "mirrored horizontally (axis 3 is in reverse order)",
    ),
    "top to bottom": (
        KERNEL, KERNEL[:, :, ::-1], Kind.PARAMETERS, "mirrored vertically (axis 2 is in reverse order)",
    ),
    "pruned": (
        SQUARE, np.where(np.abs(SQUARE) < SMALL, 0, SQUARE), Kind.PARAMETERS,
        f"zero in {int((np.abs(SQUARE) < SMALL).sum())} of 1600 elements, all elements below "
        f"{np.abs(SQUARE[np.abs(SQUARE) < SMALL]).max():.3g}",
    ),
    "dropped": (
        SQUARE, np.where(EVERY_NINTH, 0, SQUARE), Kind.PARAMETERS,
        f"zero in 178 of 1600 elements, some elements below {np.abs(SQUARE[EVERY_NINTH]).max():.3g}",
    ),
    "clipped": (
        SQUARE, np.clip(SQUARE, -1, 1.5), Kind.PARAMETERS,
        f"clipped to the range [-1, 1.5], which {int(((SQUARE < -1) | (SQUARE > 1.5)).sum())} of 1600 elements "
        "were beyond",
    ),
    "here and there": (
        SQUARE, np.where(EVERY_NINTH, SQUARE + 1, SQUARE), Kind.PARAMETERS,
        "wrong in 178 of 1600 elements, and the same in all others",
    ),
    "permuted": (KERNEL, KERNEL[[1, 0, 2, 5, 4, 3]], Kind.PARAMETERS, "permuted along axis 0 (4 of 6 places)"),
    "permuted inputs": (KERNEL, KERNEL[:, [2, 1, 0, 3, 4]], Kind.PARAMETERS, "permuted along axis 1 (2 of 5 places)"),
    "permuted vector": (
        VECTOR, VECTOR[::-1], Kind.PARAMETERS, "permuted along axis 0 (30 of 30 places): it's in reverse order",
    ),
    "rows for columns": (
        TABLE, TABLE.reshape(8, 25, 16).swapaxes(0, 1).reshape(200, 16), Kind.PARAMETERS,
        ("permuted along axis 0 (198 of 200 places): the axis is 25 x 8 in the converted model, 8 x 25 "
         "in the original"),
    ),
    "rows for columns of blocks": (
        SQUARE, SQUARE.reshape(40, 2, 5, 4).swapaxes(1, 2).reshape(40, 40), Kind.PARAMETERS,
        ("permuted along axis 1 (32 of 40 places): the axis is 5 x 2 x 4 in the converted model, 2 x "
         "5 x 4 in the original"),
    ),
    "halves": (
        SQUARE, np.roll(SQUARE, 20, 1), Kind.PARAMETERS,
        "permuted along axis 1 (40 of 40 places): its 2 equal parts are in the order [1, 0]",
    ),
    "gates": (
        SQUARE, SQUARE.reshape(4, 10, 40)[[0, 3, 2, 1]].reshape(40, 40), Kind.PARAMETERS,
        "permuted along axis 0 (20 of 40 places): its 4 equal parts are in the order [0, 3, 2, 1]",
    ),
    "a table that begins later": (
        TABLE[:-2], TABLE[2:], Kind.PARAMETERS, "shifted by -2 along axis 0, with other numbers in 2 of 198 places",
    ),
    "reshaped": (
        TABLE, TABLE.T.reshape(TABLE.shape), Kind.PARAMETERS, "the same numbers in another order",
    ),
    "scaled channels": (
        KERNEL, with_slices(KERNEL, 0, [1, 4], lambda x: 2 * x), Kind.PARAMETERS,
        "scaled by 2 in 2 of 6 slices of axis 0",
    ),
    "lost channels": (
        KERNEL, with_slices(KERNEL, 0, [1, 4], lambda x: 0 * x), Kind.PARAMETERS, "zero in 2 of 6 slices of axis 0",
    ),
    "folded by channel": (
        KERNEL, KERNEL * np.linspace(0.5, 3, 6)[:, None, None, None], Kind.PARAMETERS,
        "scaled by 0.5 to 3 in 5 of 6 slices of axis 0",  # the factor of one of them is 1
    ),
    "other rows": (
        TABLE, with_slices(TABLE, 0, [3, 17], lambda x: x[::-1] + 1), Kind.PARAMETERS,
        "wrong in 2 of 200 slices of axis 0 (3, 17)",
    ),
    "some numbers": (VECTOR, with_slices(VECTOR, 0, [2], lambda x: x + 1), Kind.PARAMETERS,
        "wrong in 1 of 30 slices of axis 0 (2)"),
    "bfloat16": (
        SQUARE, SQUARE.astype(ml_dtypes.bfloat16).astype(np.float32), Kind.PRECISION, "rounded to bfloat16",
    ),
    "float16": (SQUARE, SQUARE.astype(np.float16).astype(np.float32), Kind.PRECISION, "rounded to float16"),
    "four bits": (
        SQUARE, levels(SQUARE, 4), Kind.PRECISION,
        "rounded to int4, one scale for the whole tensor, and stored as real numbers",
    ),
    "noise": (SQUARE, noise(SQUARE), Kind.PARAMETERS, "off by 10 % everywhere, as if random noise were added"),
    "shape": (SQUARE, SQUARE[:, :20], Kind.PARAMETERS, "of shape [40, 20] instead of [40, 40]"),
    "not finite": (
        SQUARE, np.where(SQUARE > 2.5, np.inf, SQUARE), Kind.PARAMETERS,
        f"not finite in {int((SQUARE > 2.5).sum())} places",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_every_change_has_its_words(name: str) -> None:
    one, two, kind, words = CASES[name]
    found = difference(one, two)
    assert found is not None
    assert (found.kind, found.words) == (kind, words)
    if one.shape == two.shape and np.isfinite(two).all():
        assert found.relative == pytest.approx(
            float(np.linalg.norm(two.astype(float) - one) / np.linalg.norm(one.astype(float))), rel=1e-6
        )


@pytest.mark.parametrize("array", [KERNEL, SQUARE, VECTOR, TABLE, np.zeros(5), np.array(3.0), np.empty((0, 3))])
def test_rounding_is_no_change(array: Array) -> None:
    assert difference(array, array * (1 + 1e-7)) is None


def test_eight_bits_are_told_from_noise() -> None:
    large = np.random.default_rng(5).normal(size=(64, 64)).astype(np.float32)
    found = difference(large, levels(large, 8))
    assert found is not None
    assert found.words.startswith("rounded to int8, one scale for the whole tensor")


def test_half_precision_is_not_said_of_what_only_looks_like_it() -> None:
    """Numbers that float16 holds, and that aren't what the source's round to."""
    found = difference(SQUARE, noise(SQUARE).astype(np.float16).astype(np.float32))
    assert found is not None
    assert found.kind is Kind.PARAMETERS


def parameter(array: Array, bits: int | None = None, scales: tuple[float, ...] = ()) -> Parameter:
    return Parameter("w", array.shape, "float32", lambda: array, bits, scales)


def test_quantized_as_meant_is_no_difference() -> None:
    step = float(np.abs(SQUARE).max() / 127)
    whole = parameter(levels(SQUARE, 8), 8, (step,))
    assert compare_parameters(parameter(SQUARE), whole) is None
    assert compare_parameters(parameter(SQUARE * np.float32(1.02)), whole) is not None
    assert (
        compare_parameters(parameter(SQUARE), parameter(levels(SQUARE, 8))) is not None
    )  # nobody says it's quantized


@pytest.mark.parametrize("axis", [0, 1])
def test_quantized_per_channel(axis: int) -> None:
    steps = np.abs(KERNEL).max(tuple(place for place in range(4) if place != axis), keepdims=True) / 127
    rounded = (np.round(KERNEL / steps) * steps).astype(np.float32)
    scales = tuple(float(step) for step in steps.reshape(-1))
    assert compare_parameters(parameter(KERNEL), parameter(rounded, 8, scales)) is None
    wrong = with_slices(rounded, axis, [2], lambda x: x * np.float32(1.5))
    assert compare_parameters(parameter(KERNEL), parameter(wrong, 8, scales)) is not None


def test_axes_of_one_and_single_numbers_are_no_other_shape() -> None:
    assert compare_parameters(parameter(VECTOR), parameter(VECTOR.reshape(1, 30, 1, 1))) is None
    assert compare_parameters(parameter(np.float32(2.0) * np.ones(5)), parameter(np.float32([2.0]))) is None
    found = compare_parameters(parameter(VECTOR), parameter(2 * VECTOR.reshape(1, 30)))
    assert found is not None
    assert found.words == "scaled by 2"


def _in_bits(real: Array, factors: Array) -> Parameter:
    """Rows in eight bits, whose scales are so many times those of their integers."""
    right = np.abs(real).max(axis=1) / 127
    held = np.rint(real / right[:, None]) * (right * factors)[:, None]
    return Parameter("w", real.shape, "int8", lambda: held, 8, tuple(right * factors))


def test_scales_that_are_not_those_of_their_integers() -> None:
    real = np.random.default_rng(5).normal(size=(24, 30))
    source = Parameter("w", real.shape, "float32", lambda: real)
    assert compare_parameters(source, _in_bits(real, np.ones(24))) is None
    few = np.where(np.arange(24) % 8 == 3, 1.02, 1.0)
    found = compare_parameters(source, _in_bits(real, few))
    assert found is not None
    assert found.plain
    assert found.words == "scaled by 1.02 in 3 of 24 slices of axis 0"
    # A normalization in the weights scales each channel, and is no wrong scale.
    folded = compare_parameters(source, _in_bits(real, np.linspace(0.5, 1.5, 24)))
    assert folded is not None
    assert not folded.plain
    # Other numbers than the integers', as a calibration of weights or training in few bits leaves them.
    trained = real.copy()
    trained[3] += np.random.default_rng(6).normal(size=30) * 0.05
    moved = compare_parameters(source, _in_bits(trained, np.ones(24)))
    assert moved is None or not moved.plain


@pytest.mark.parametrize(
    ("one", "two", "words"),
    [
        (0, -1, "-1 in the converted model, 0 in the original"),
        (3, 6, "6 in the converted model, 3 in the original"),
        ([0, 2, 4], [0, 3, 4], "3 in the converted model, 2 in the original, and so in 1 of 3 places"),
        ([0, 1, 2], [1, 2, 3], "shifted by 1"),
        ([0, 1, 2], [2, 1, 0], "permuted along axis 0 (2 of 3 places)"),
    ],
)
def test_whole_numbers_are_compared_as_such(one: Array, two: Array, words: str) -> None:
    found = compare_parameters(parameter(np.array(one, np.int64)), parameter(np.array(two, np.int64)))
    assert found is not None
    assert (found.kind, found.words) == (Kind.PARAMETERS, words)
    assert np.isfinite(found.relative)
    assert compare_parameters(parameter(np.array(one, np.int64)), parameter(np.array(one, np.int32))) is None

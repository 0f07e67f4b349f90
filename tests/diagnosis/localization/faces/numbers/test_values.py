"""What results say of themselves."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from conrepair.diagnosis.localization.faces.numbers.values import relation
from conrepair.ground.graph.kinds import Kind

Array = np.ndarray
PICTURE = np.random.default_rng(0).normal(size=(2, 6, 9, 8)).astype(np.float32)
MATRIX = np.random.default_rng(1).normal(size=(4, 300)).astype(np.float32)


def moved(steps: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    """By a cell, with zeros in the cells that come in."""
    result = np.roll(PICTURE, steps, axes)
    for step, axis in zip(steps, axes, strict=True):
        place = [slice(None)] * 4
        place[axis] = slice(0, 1) if step > 0 else slice(-1, None)
        result[tuple(place)] = 0
    return result


def bordered(value: float) -> Array:
    result = PICTURE.copy()
    for axis in (2, 3):
        for end in (0, -1):
            np.moveaxis(result, axis, 0)[end] *= value
    return result


def slices(change: float) -> Array:
    result = PICTURE.copy()
    result[:, 4] = change - result[:, 4] ** 2
    return result


CASES: dict[str, tuple[Array, Array, Kind | None, str]] = {
    "zero": (PICTURE, 0 * PICTURE, None, "zero everywhere"),
    "scaled": (PICTURE, 3 * PICTURE, None, "3 times the original's values"),
    "negated": (PICTURE, -PICTURE, None, "-1 times the original's values"),
    "offset": (PICTURE, PICTURE + 0.25, None, "+0.25 off the original's values"),
    "affine": (PICTURE, 2 * PICTURE - 1, None, "2 times and -1 off the original's values"),
    "shifted": (PICTURE, moved((1,), (3,)), None, "shifted by one element (+1 along axis 3)"),
    "shifted back": (PICTURE, moved((-1,), (2,)), None, "shifted by one element (-1 along axis 2)"),
    "shifted both": (
        PICTURE, moved((1, 1), (2, 3)), None, "shifted by one element (+1 along axis 2, +1 along axis 3)",
    ),
    "reversed": (
        PICTURE, PICTURE[:, ::-1], Kind.STRUCTURE,
        "the same values in another order along axis 1: it's in reverse order",
    ),
    "halves exchanged": (
        MATRIX, np.roll(MATRIX, 150, 1), Kind.STRUCTURE,
        "the same values in another order along axis 1: its 2 equal parts are in the order [1, 0]",
    ),
    "multiplier first": (
        PICTURE, PICTURE.reshape(-1, 2, 3, 9, 8).swapaxes(1, 2).reshape(PICTURE.shape), Kind.STRUCTURE,
        ("the same values in another order along axis 1: the axis is 3 x 2 in the converted model, 2 "
         "x 3 in the original"),
    ),
    "reordered": (
        MATRIX, MATRIX[:, np.random.default_rng(2).permutation(300)], Kind.STRUCTURE,
        "the same values in another order",
    ),
    "float16": (PICTURE, PICTURE.astype(np.float16).astype(np.float32), Kind.PRECISION, "stored as float16"),
    "bfloat16": (
        PICTURE, PICTURE.astype(ml_dtypes.bfloat16).astype(np.float32), Kind.PRECISION, "stored as bfloat16",
    ),
    "levels": (MATRIX, np.round(MATRIX * 4) / 4 * np.float32(1.001), Kind.PRECISION, "stored in"),
    "saturated": (MATRIX, np.clip(MATRIX, -0.5, 1), None, "clipped at -0.5 and 1 ("),
    "one slice": (PICTURE, slices(1.0), None, "wrong in 1 of 6 slices of axis 1 (4)"),
    "by channel": (
        PICTURE, PICTURE * np.linspace(1, 3, 6)[:, None, None] + np.linspace(-1, 2, 6)[:, None, None], None,
        "scaled by 1 to 3 and shifted, for each slice of axis 1",
    ),
    "border": (PICTURE, bordered(2.5), None, "wrong at the border along axes [2, 3] only"),
    "shape": (PICTURE, PICTURE[:, :5], None, "shape [2, 5, 9, 8] instead of [2, 6, 9, 8]"),
    "nan": (PICTURE, np.where(PICTURE > 2, np.nan, PICTURE), Kind.PRECISION, "values are NaN"),
    "overflow": (PICTURE, np.where(PICTURE > 2, np.inf, PICTURE), Kind.PRECISION, "values are infinite or NaN"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_every_relation_has_its_words(name: str) -> None:
    one, two, kind, words = CASES[name]
    found = relation(one, two.astype(np.float32))
    assert found is not None
    assert found[0] is kind
    assert words in found[1]
    if not words.endswith(("(", "stored in", "NaN")):
        assert found[1] == words


@pytest.mark.parametrize("noise", [0.05, 1.0])
def test_noise_is_nothing_simple(noise: float) -> None:
    other = np.random.default_rng(3).normal(size=PICTURE.shape)
    assert relation(PICTURE, (PICTURE + noise * other).astype(np.float32)) is None


def test_another_network_is_nothing_simple() -> None:
    assert relation(MATRIX, np.tanh(MATRIX[:, ::-1] + MATRIX**2)) is None


def test_channels_in_the_last_axis() -> None:
    """The layout isn't known here: borders and shifts are looked for along every two neighbouring axes."""
    last = relation(PICTURE.transpose(0, 2, 3, 1), bordered(2.5).transpose(0, 2, 3, 1))
    assert last == (None, "wrong at the border along axes [1, 2] only")
    shifted = relation(PICTURE.transpose(0, 2, 3, 1), moved((1, 1), (2, 3)).transpose(0, 2, 3, 1))
    assert shifted == (None, "shifted by one element (+1 along axis 1, +1 along axis 2)")


def test_values_that_were_not_finite_before_say_nothing() -> None:
    one = PICTURE.copy()
    one[0, 0, 0, 0] = np.nan
    two = 2 * one
    assert relation(one, two) == (None, "2 times the original's values")


@pytest.mark.parametrize("size", [1, 2])
def test_a_few_values_say_little(size: int) -> None:
    one = np.arange(1.0, size + 1).reshape(1, size)
    assert relation(one, one + 0.123) is None

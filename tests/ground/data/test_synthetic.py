"""Pictures that are drawn look like photos to a network: neighbours are alike, and colours differ."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conrepair.ground.data.input_range import InputRange
from conrepair.ground.data.synthetic import SyntheticRange, draw, draw_picture, in_words, is_picture
from conrepair.ground.data.tensor_spec import TensorSpec

SHAPES = st.sampled_from([(3, 16, 24), (16, 24, 3), (1, 8, 8), (9, 40, 4)])


@given(SHAPES, st.integers(0, 99))
def test_portions_of_a_range(shape: tuple[int, ...], seed: int) -> None:
    picture = draw_picture(np.random.default_rng(seed), shape)
    assert picture.shape == shape
    assert picture.min() >= 0
    assert picture.max() <= 1


@pytest.mark.parametrize(("shape", "axis"), [((3, 32, 32), (1, 2)), ((32, 32, 3), (0, 1))])
def test_they_vary_slowly_and_from_one_to_the_next(shape: tuple[int, ...], axis: tuple[int, int]) -> None:
    pictures = [draw_picture(np.random.default_rng(seed), shape) for seed in range(20)]
    colours = np.stack([picture.mean(axis) for picture in pictures])
    noise = np.stack([np.random.default_rng(seed).random(shape).mean(axis) for seed in range(20)])
    assert colours.std(0).min() > 5 * noise.std(0).max()
    steps = np.mean([np.abs(np.diff(picture, axis=axis[0])).mean() for picture in pictures])
    assert steps < np.mean([picture.std() for picture in pictures])


@pytest.mark.parametrize(
    ("shape", "may_be"),
    [((3, 224, 224), True), ((224, 224, 3), True), ((1, 8, 8), True), ((3, 7, 32), False), ((16, 32, 32), False),
     ((128,), False), ((3, 64), False)],
)  # fmt: skip
def test_what_may_be_a_picture(shape: tuple[int, ...], may_be: bool) -> None:
    assert is_picture(shape) is may_be


def test_they_keep_to_what_files_say() -> None:
    spec = TensorSpec("image", ("batch", 3, 12, 12), "float32")
    known = InputRange((-2.0, 0.0, 5.0), (-1.0, 1.0, 9.0), "Normalization", axis=-3)
    limits = SyntheticRange(inputs=(known,), pictures=True)
    picture = draw(spec, (3, 12, 12), limits, (0, 0))
    for channel, low, high in zip(picture, known.low, known.high, strict=True):
        assert low <= channel.min() < channel.max() <= high
    assert in_words([spec], limits).startswith("pictures that vary slowly, -2 to -1, 0 to 1")
    assert np.array_equal(picture, draw(spec, (3, 12, 12), limits, (0, 0)))
    plain = draw(spec, (3, 12, 12), SyntheticRange(low=-3, high=7, pictures=True), (0, 0))
    assert -3 <= plain.min() < plain.max() <= 7

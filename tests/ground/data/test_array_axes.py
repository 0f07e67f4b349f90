"""Arrays whose samples are in front, or where the inputs have them."""

from __future__ import annotations

import numpy as np
import pytest

from conrepair.ground.data.sample_axes import common_length, samples_first
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import DataError

INPUTS = (TensorSpec("x", (7, "batch", 4), "float32"), TensorSpec("h", (2, "batch", 8), "float32"))


@pytest.mark.parametrize(
    ("shapes", "length"),
    [
        ({"x": (5, 7, 4), "h": (5, 2, 8)}, 5),
        ({"x": (7, 20, 4), "h": (2, 20, 8)}, 20),
        ({"x": (20, 7, 4), "h": (2, 20, 8)}, 20),
        ({"ids": (7, 20), "h": (2, 20, 8)}, 20),
        ({"x": (2, 3), "y": (3, 3)}, None),
        ({"x": (7, 20, 4), "h": (2, 5, 8)}, None),
        ({"x": (), "y": (3,)}, None),
    ],
)
def test_the_number_of_samples(shapes: dict[str, tuple[int, ...]], length: int | None) -> None:
    assert common_length(shapes) == length


@pytest.mark.parametrize("axes", [(0, 0), (1, 1), (0, 1), (1, 0)])
def test_samples_come_to_the_front(axes: tuple[int, int]) -> None:
    x, h = np.arange(20 * 7 * 4).reshape(20, 7, 4), np.arange(20 * 2 * 8).reshape(20, 2, 8)
    given = {"x": np.moveaxis(x, 0, axes[0]), "h": np.moveaxis(h, 0, axes[1])}
    found = samples_first(given, INPUTS, 12)
    np.testing.assert_array_equal(found["x"], x[:12])
    np.testing.assert_array_equal(found["h"], h[:12])


def test_samples_in_front_come_first_where_both_fit() -> None:
    inputs = [TensorSpec("x", ("time", "batch", 4), "float32")]
    array = np.arange(5 * 6 * 4).reshape(5, 6, 4)
    np.testing.assert_array_equal(samples_first({"": array}, inputs, 99)[""], array)


def test_other_numbers_of_samples_are_refused_with_what_to_give() -> None:
    arrays = {"x": np.zeros((7, 20, 4)), "h": np.zeros((2, 5, 8))}
    with pytest.raises(DataError, match=r"first axis, or along that of the input \(x: .* along axis 1\); found"):
        samples_first(arrays, INPUTS, 20)


def test_where_fixed_sizes_have_their_samples_can_be_declared() -> None:
    fixed = (TensorSpec("x", (7, 3, 4), "float32"), TensorSpec("h", (2, 3, 8), "float32"))
    arrays = {"x": np.zeros((7, 9, 4)), "h": np.zeros((2, 9, 8))}
    with pytest.raises(DataError, match=r"\(command line: --input x=7,batch,4 --input h=2,batch,8\)"):
        samples_first(arrays, fixed, 9)

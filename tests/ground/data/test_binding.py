"""Which array feeds which input, and in which layout."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conrepair.ground.data.binding import bind_inputs, image_layout, layout_permutation
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import DataError


def spec(name: str, *shape: int | str, dtype: str = "float32", layout: str | None = None) -> TensorSpec:
    return TensorSpec(name, shape, dtype, layout=layout)


@pytest.mark.parametrize(
    ("shape", "layout"),
    [
        (("batch", 3, 224, 224), "NCHW"),
        (("batch", 224, 224, 3), "NHWC"),
        ((1, 1, 28, 28), "NCHW"),
        ((1, 28, 28, 1), "NHWC"),
        (("batch", 3, 4, 4), "NCHW"),
        (("batch", 4, 4, 3), "NHWC"),
        (("batch", 3, "height", "width"), "NCHW"),
        (("batch", "height", "width", 3), "NHWC"),
        (("batch", 3, 17, 3), None),
        (("batch", 8, 16, 16), None),
        (("batch", 128), None),
    ],
)
def test_image_layout_is_told_from_the_channel_axis(shape: tuple[int | str, ...], layout: str | None) -> None:
    assert image_layout(spec("x", *shape)) == layout


def test_a_declared_layout_wins() -> None:
    assert image_layout(spec("x", "batch", 3, 17, 3, layout="NHWC")) == "NHWC"


@given(st.lists(st.integers(1, 5), min_size=2, max_size=4), st.booleans())
def test_moving_channels_to_the_other_end_is_undone_by_the_permutation(sizes: list[int], to_end: bool) -> None:
    given_shape = (2, *sizes)
    moved = (2, *sizes[1:], sizes[0]) if to_end else (2, sizes[-1], *sizes[:-1])
    permutation = layout_permutation(given_shape, moved)
    assert permutation is not None
    assert np.zeros(given_shape).transpose(permutation).shape == moved


def test_shapes_that_no_layout_explains_have_no_permutation() -> None:
    assert layout_permutation((1, 3, 8, 9), (1, 8, 3, 9)) is None
    assert layout_permutation((1, 3, 8, 9), (1, 3, 72)) is None


def test_inputs_are_paired_by_name_whatever_the_order() -> None:
    samples = [spec("a", "batch", 4), spec("b", "batch", 4)]
    bindings = bind_inputs(samples, [spec("b", "n", 4), spec("a", "n", 4)])
    assert [(item.sample, item.input) for item in bindings] == [("b", "b"), ("a", "a")]


def test_renamed_inputs_are_paired_by_shape_and_type_then_by_order() -> None:
    samples = [spec("ids", "batch", 7, dtype="int64"), spec("image", "batch", 3, 8, 9)]
    inputs = [spec("x", "n", 8, 9, 3), spec("y", "n", 7, dtype="int32")]
    first, second = bind_inputs(samples, inputs)
    assert (first.sample, first.permutation) == ("image", (0, 2, 3, 1))
    assert (second.sample, second.permutation) == ("ids", None)


def test_declared_layouts_decide_where_shapes_are_ambiguous() -> None:
    samples = [spec("x", "batch", 3, 3, 3, layout="NCHW")]
    (binding,) = bind_inputs(samples, [spec("x", "n", 3, 3, 3, layout="NHWC")])
    assert binding.permutation == (0, 2, 3, 1)


def test_sizes_that_agree_say_more_than_open_ones() -> None:
    samples = [spec("x", "batch", 3, "height", "width")]
    (binding,) = bind_inputs(samples, [spec("x", "n", "?", "?", 3)])
    assert binding.permutation == (0, 2, 3, 1)
    (binding,) = bind_inputs(samples, [spec("x", "n", "?", "?", "?")])
    assert binding.permutation is None


def test_an_input_without_data_is_named() -> None:
    with pytest.raises(DataError, match=r"no array of the data fits input mask: float32\[n, 9\]\. Of the data, "):
        bind_inputs([spec("x", "batch", 4)], [spec("x", "n", 4), spec("mask", "n", 9)])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            spec("x", "batch", 4, dtype="int64"),
            r"has another type; store it as float32 \(`array.astype\('float32'\)`\)",
        ),
        (spec("x", 4), r"lacks an axis; the first one counts samples"),
        (spec("x", "batch", 1, 4), "has an axis too many"),
        (spec("x", "batch", 7), r"has another shape \(axis 1 has 7 and not 4\)"),
        (spec("x", "batch", 4, 4, 4), "has 4 axes, and the input has 2"),
    ],
)
def test_what_does_not_fit_is_said(given: TensorSpec, words: str) -> None:
    with pytest.raises(DataError, match=words):
        bind_inputs([given], [spec("x", "n", 4)])


def test_an_array_that_feeds_another_input_is_said_to_be_taken() -> None:
    with pytest.raises(DataError, match="feeds another input; store an array called y beside it"):
        bind_inputs([spec("x", "batch", 4)], [spec("x", "n", 4), spec("y", "n", 4)])

"""Which sizes a model would have to declare to take what another one is fed."""

from __future__ import annotations

from conrepair.ground.data.declared_sizes import sizes_in_words, sizes_wanted
from conrepair.ground.data.tensor_spec import Dimension, TensorSpec


def spec(*shape: Dimension, name: str = "x") -> TensorSpec:
    return TensorSpec(name, shape, "float32")


def test_what_fits_needs_none() -> None:
    assert sizes_wanted([spec(1, 3, 32, 32)], [spec("batch", 3, 32, 32)]) is None
    assert sizes_wanted([spec("batch", 3, 32, 30)], [spec(4, 32, 30, 3)]) is None  # channels last
    assert sizes_wanted([spec(1, 3, 32, 32)], [spec(1, 3, "height", "width")]) is None
    assert sizes_wanted([spec("batch", 3, "height", "width")], [spec(1, 3, 24, 24)]) is None


def test_a_batch_isnt_meant() -> None:
    assert sizes_wanted([spec(1, 7)], [spec(4, 7)]) is None


def test_sizes_that_differ_in_either_layout() -> None:
    assert sizes_wanted([spec(1, 3, 32, 30)], [spec(1, 3, 24, 30)]) == ((None, None, 32, None),)
    assert sizes_wanted([spec(1, 3, 32, 30)], [spec(2, 24, 24, 3)]) == ((None, 32, 30, None),)
    assert sizes_wanted([spec("n", 32, 30, 3)], [spec("n", 3, 24, 24)]) == ((None, None, 32, 30),)


def test_inputs_are_paired_by_name() -> None:
    fed = [spec(1, 5, name="one"), spec(1, 7, name="two")]
    inputs = [spec(1, 7, name="two"), spec(1, 6, name="one")]
    wanted = sizes_wanted(fed, inputs)
    assert wanted == ((None, None), (None, 5))
    assert sizes_in_words(fed, inputs, wanted) == (
        "input one: float32[1, 6] is declared with another shape than one: float32[1, 5] of the original"
    )


def test_other_differences_are_none_of_sizes() -> None:
    assert sizes_wanted([spec(1, 3)], [spec(1, 3, 1)]) is None
    assert sizes_wanted([spec(1, 3)], [spec(1, 4), spec(1, 4, name="y")]) is None


def test_what_feeds_would_find_is_no_matter_of_sizes() -> None:
    fed = [spec("n", 5, name="a"), spec("n", 7, name="b")]
    assert sizes_wanted(fed, [spec("n", 7, name="x"), spec("n", 5, name="y")]) is None
    assert sizes_wanted(fed, [spec("n", 7, name="a"), spec("n", 5, name="b")]) is None
    assert sizes_wanted(fed, [spec("n", 7, name="x"), spec("n", 6, name="y")]) == ((None, None), (None, 5))

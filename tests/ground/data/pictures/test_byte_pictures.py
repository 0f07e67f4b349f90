"""Pictures as bytes, and as numbers made of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conrepair.ground.data.pictures.byte_pictures import in_words, likely_recipes, taken_apart, to_bytes, to_reals
from conrepair.ground.data.pictures.recipe import Recipe
from conrepair.ground.data.tensor_spec import Quantization, TensorSpec
from conrepair.ground.runtime.errors import DataError

LAST = TensorSpec("x", ("n", 9, 8, 3), "uint8")
FIRST = TensorSpec("y", ("n", 3, 9, 8), "float32")


@given(seed=st.integers(0, 1 << 16), recipe=st.sampled_from(likely_recipes()), first=st.booleans())
def test_bytes_come_back_from_what_was_made_of_them(seed: int, recipe: Recipe, first: bool) -> None:
    rows = np.random.default_rng(seed).integers(0, 256, (2, 9, 8, 3), np.uint8)
    spec = FIRST if first else TensorSpec("y", LAST.shape, "float32")
    made = to_reals(recipe, rows, spec)
    assert made.shape[1:] == spec.shape[1:]
    last = made.transpose(0, 2, 3, 1) if first else made
    np.testing.assert_array_equal(to_bytes(recipe, last, LAST), rows)


def test_numbers_that_are_none_of_bytes_are_refused() -> None:
    noise = np.random.default_rng(0).normal(size=(2, 9, 8, 3))
    for recipe in likely_recipes():
        with pytest.raises(DataError, match="takes bytes"):
            to_bytes(recipe, noise, LAST)


def test_recipes_are_told_apart() -> None:
    recipes = likely_recipes()
    assert len({(item.channels, item.divisor, item.mean, item.std) for item in recipes}) == len(recipes) > 8
    assert recipes[0].name == "torchvision"
    assert in_words(recipes[0]).endswith("(bytes / 255 - (0.485, 0.456, 0.406) / (0.229, 0.224, 0.225))")


@pytest.mark.parametrize(
    ("one", "two", "apart"),
    [
        (LAST, FIRST, True),
        (FIRST, LAST, True),
        (FIRST, FIRST, False),
        (TensorSpec("x", LAST.shape, "uint8", Quantization(0.1, 3)), FIRST, False),
        (TensorSpec("x", ("n", 8, 8, 3), "uint8"), FIRST, False),
        (TensorSpec("x", ("n", 9, 8, 1), "uint8"), TensorSpec("y", ("n", 1, 9, 8), "float32"), False),
        (TensorSpec("x", ("n", 4), "uint8"), TensorSpec("y", ("n", 4), "float32"), False),
    ],
)
def test_which_inputs_are_pictures_prepared_otherwise(one: TensorSpec, two: TensorSpec, apart: bool) -> None:
    found = taken_apart([one], [two])
    assert (found is not None) == apart
    if found is not None:
        assert (found[0].dtype, found[1].dtype) == ("uint8", "float32")

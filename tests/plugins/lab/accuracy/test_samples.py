"""The data that operators are measured with."""

from __future__ import annotations

import numpy as np
import pytest

from conrepair_lab.accuracy.samples import CONDITIONS, condition_of, feed


def test_float32_has_every_exponent_of_both_signs_and_the_specials() -> None:
    values = feed("values", "float32")
    assert values.dtype == np.float32
    assert 200_000 < values.size < 300_000
    exponents = (values.view(np.uint32) >> 23).ravel()
    assert len(np.unique(exponents)) == 512
    zeros = values[values == 0]
    assert np.signbit(zeros).any()
    assert not np.signbit(zeros).all()
    assert np.isnan(values).any()
    assert np.isinf(values).any()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_two_byte_types_have_every_value(dtype: str) -> None:
    assert len(np.unique(feed("values", dtype).view(np.uint16))) == 1 << 16


def test_pairs_hold_nearly_equal_ones_and_all_pairs_of_specials() -> None:
    left, right = feed("left", "float32"), feed("right", "float32")
    with np.errstate(all="ignore"):
        ratio = np.abs(left / right - 1)
    assert (ratio[np.isfinite(ratio)] < 1e-6).sum() > 10_000
    assert (np.isnan(left) & np.isinf(right)).any()


@pytest.mark.parametrize("size", [8, 129])
def test_rows_are_conditioned_as_they_are_called(size: int) -> None:
    rows = feed(f"rows {size}", "float32").astype(np.float64)
    names = list(CONDITIONS)
    kinds = {name: rows[condition_of(len(rows)) == place] for place, name in enumerate(names)}
    cancelling = kinds["that cancel"]
    if size % 2 == 0:
        assert (np.abs(cancelling.sum(1)) / np.abs(cancelling).sum(1)).max() < 1e-3
    assert (kinds["of one sign"] > 0).all()
    assert (np.abs(kinds["far from zero"].mean(1)) > 100 * kinds["far from zero"].std(1)).all()


def test_the_same_name_is_the_same_data() -> None:
    assert feed("images 3 7", "float32") is feed("images 3 7", "float32")
    assert feed("images 3 7", "float32").shape == (10, 3, 7, 7)

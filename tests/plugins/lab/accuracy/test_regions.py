"""Where errors are, in words."""

from __future__ import annotations

import numpy as np
import pytest

from conrepair_lab.accuracy.regions import region, region_of_pairs, region_of_sizes
from conrepair_lab.accuracy.samples import feed

X = feed("values", "float32").astype(np.float64)
ORDINARY = np.isfinite(X)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (X < -17, "x < -17"),
        (X > 88.5, "x > 88.5"),
        (np.abs(X) < 6e-8, "|x| < 6e-08"),
        ((X < 0) & (X > -1e-3), "x < 0, |x| < 0.001"),
        ((X > -20) & (X < -10), "-20 < x < -10"),
        ((np.abs(X) > 10) & (np.abs(X) < 100), "10 < |x| < 100"),
        (np.isfinite(X), "everywhere"),
    ],
)
def test_ranges_are_told(wrong: np.ndarray, words: str) -> None:
    assert region(X, wrong & ORDINARY, ORDINARY) == words


def test_scattered_errors_are_told_as_such() -> None:
    wrong = (X > 1) & (X < 1e6) & (np.random.default_rng(0).random(X.shape) < 0.05)
    assert region(X, wrong, ORDINARY).startswith("at some ")


def test_pairs_are_told_by_what_decides() -> None:
    left, right = (feed(name, "float32").astype(np.float64) for name in ("left", "right"))
    with np.errstate(all="ignore"):
        wrong, ordinary = np.abs(left / right) > 1e9, np.isfinite(left / right)
    assert region_of_pairs(left, right, wrong & ordinary, ordinary) == "|a/b| > 1e+09"


def test_sizes_and_sorts_of_terms_are_told() -> None:
    none, some, every = np.zeros(5, bool), np.array([0, 0, 0, 1, 0], bool), np.ones(5, bool)
    assert region_of_sizes({3: none, 8: some, 64: some}) == "sizes from 8 on: terms far from zero"
    assert region_of_sizes({3: none, 8: every, 64: none}) == "sizes 8"
    assert region_of_sizes({3: every, 8: every}) == "everywhere"

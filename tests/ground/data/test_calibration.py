"""Which samples calibrate, and in what batches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from conrepair.ground.data.feeds import CalibrationFeeds, DataReference, open_feeds
from conrepair.ground.data.tensor_spec import TensorSpec


def feeds(folder: Path, count: int, samples: int, batch: int | str = "batch") -> CalibrationFeeds:
    np.save(folder / "x.npy", np.arange(count * 2, dtype=np.float32).reshape(count, 2))
    inputs = (TensorSpec("x", (batch, 2), "float32"),)
    source = open_feeds(DataReference("tensors", count, str(folder / "x.npy"), "hash"), inputs, None)
    return CalibrationFeeds(source, inputs, samples)


def firsts(calibration: CalibrationFeeds) -> list[list[int]]:
    """The numbers of the samples in each batch."""
    return [[int(value) // 2 for value in batch["x"][:, 0]] for batch in calibration]


@pytest.mark.parametrize(
    ("count", "samples", "expected"),
    [
        (10, 5, [0, 2, 4, 6, 8]),
        (10, 3, [0, 3, 6]),
        (10, 10, list(range(10))),
        (10, 100, list(range(10))),
        (10, 9, [0, 1, 2, 3, 4, 5, 6, 7, 8]),
        (7, 1, [0]),
    ],
)
def test_samples_are_spread_evenly(tmp_path: Path, count: int, samples: int, expected: list[int]) -> None:
    assert firsts(feeds(tmp_path, count, samples)) == [[index] for index in expected]


def test_a_fixed_batch_is_filled_up(tmp_path: Path) -> None:
    assert firsts(feeds(tmp_path, 10, 5, batch=4)) == [[0, 2, 4, 6], [8, 8, 8, 8]]


def test_they_may_be_read_again(tmp_path: Path) -> None:
    calibration = feeds(tmp_path, 6, 3)
    assert firsts(calibration) == firsts(calibration) == [[0], [2], [4]]


def test_inputs_without_a_common_batch_are_given_whole(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    arrays = {"state": generator.normal(size=(6, 2, 3)), "chunk": generator.normal(size=(6, 5))}
    np.savez(tmp_path / "x.npz", **{name: array.astype(np.float32) for name, array in arrays.items()})
    inputs = (TensorSpec("state", (2, 3), "float32"), TensorSpec("chunk", (5,), "float32"))
    source = open_feeds(DataReference("tensors", 6, str(tmp_path / "x.npz"), "hash"), inputs, None)
    given = list(CalibrationFeeds(source, inputs, 2))
    assert [feed["state"].shape for feed in given] == [(2, 3), (2, 3)]
    np.testing.assert_array_equal(given[1]["chunk"], arrays["chunk"][3].astype(np.float32))

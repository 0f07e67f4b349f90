"""Rows are written as they come, and read back as they were."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import hypothesis.extra.numpy as arrays
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conrepair.ground.data.stored_values import StoredRows


@given(
    array=arrays.arrays(
        st.sampled_from(["float32", "int8", "bool", "float64", "complex64", ">i2"]),
        arrays.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5),
    ),
    size=st.integers(1, 3),
)
def test_rows_in_batches_are_the_array(
    tmp_path_factory: pytest.TempPathFactory, array: np.ndarray, size: int
) -> None:
    path = tmp_path_factory.mktemp("rows") / "rows.npy"
    stored = StoredRows(path, array.dtype, array.shape)
    for start in range(0, len(array), size):
        stored.put(start, array[start : start + size])
    found = np.load(path)
    assert found.dtype == array.dtype
    assert found.tobytes() == array.tobytes()


def test_rows_that_did_not_come_are_zeros_and_others_are_cast(tmp_path: Path) -> None:
    stored = StoredRows(tmp_path / "rows.npy", np.float32, (3, 2))
    stored.put(1, np.array([[1, 2]], dtype=np.int64))
    np.testing.assert_array_equal(np.load(tmp_path / "rows.npy"), [[0, 0], [1, 2], [0, 0]])


def test_elements_that_numpy_has_not(tmp_path: Path) -> None:
    array = np.arange(6, dtype=ml_dtypes.bfloat16).reshape(3, 2)
    StoredRows(tmp_path / "rows.npy", array.dtype, array.shape).put(0, array)
    assert np.load(tmp_path / "rows.npy").tobytes() == array.tobytes()


def test_objects_have_no_bytes(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Python objects"):
        StoredRows(tmp_path / "rows.npy", object, (1,))


@pytest.fixture
def _few_files() -> Iterator[None]:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(list(Path("/proc/self/fd").iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 20, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.usefixtures("_few_files")
def test_there_may_be_more_outputs_than_files_that_may_be_open(tmp_path: Path) -> None:
    stored = [StoredRows(tmp_path / f"{index}.npy", np.float32, (2, 1)) for index in range(100)]
    for rows in stored:
        rows.put(0, np.ones((2, 1), np.float32))
    assert np.load(tmp_path / "99.npy").sum() == 2

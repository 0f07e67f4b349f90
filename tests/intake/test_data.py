"""Data as arrays, mappings and batches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conrepair.data.tensors import read_tensors
from conrepair.intake.data import data_file
from conrepair.runtime.errors import DataError, UsageError

ARRAY = np.arange(24, dtype=np.float32).reshape(6, 4)


def read(data: Any, folder: Path, **options: Any) -> dict[str, Any]:
    path = data_file(data, folder / "given", **options)
    assert path is not None
    return {name: np.array(array) for name, array in read_tensors(path).items()}


def test_paths_and_nothing_stay(tmp_path: Path) -> None:
    assert data_file(tmp_path / "photos", tmp_path / "given") == tmp_path / "photos"
    assert data_file(None, tmp_path / "given") is None
    assert not (tmp_path / "given").exists()


def test_arrays_and_mappings(tmp_path: Path) -> None:
    np.testing.assert_array_equal(read(ARRAY, tmp_path)[""], ARRAY)
    found = read({"a": ARRAY, "b": ARRAY[:, 0]}, tmp_path)
    assert list(found) == ["a", "b"]
    np.testing.assert_array_equal(found["b"], ARRAY[:, 0])


def test_batches_are_joined_up_to_a_limit(tmp_path: Path) -> None:
    taken = []

    def batches() -> Iterator[Any]:
        for start in (0, 2, 4):
            taken.append(start)
            yield {"x": ARRAY[start : start + 2]}, [1, 0]

    np.testing.assert_array_equal(read(batches(), tmp_path)["x"], ARRAY)
    taken.clear()
    np.testing.assert_array_equal(read(batches(), tmp_path, limit=3)["x"], ARRAY[:3])
    assert taken == [0, 2]


def test_a_loader_that_fails_is_named(tmp_path: Path) -> None:
    def broken() -> Iterator[Any]:
        yield ARRAY
        raise OSError("disk gone")

    with pytest.raises(DataError, match="batch 1 of the data failed: OSError: disk gone"):
        data_file(broken(), tmp_path)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([], "gave no batch"),
        ([ARRAY, ARRAY[:, :2]], "don't fit together"),
        ([{"a": ARRAY}, {"b": ARRAY}], "has the inputs"),
        (["words"], "holds no arrays"),
    ],
)
def test_batches_that_are_wrong(data: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=words):
        data_file(data, tmp_path)


def test_what_is_no_data(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="data is a int"):
        data_file(3, tmp_path)

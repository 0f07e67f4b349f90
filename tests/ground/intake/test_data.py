"""Data as arrays, mappings and batches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conrepair.ground.data.tensors import read_tensors
from conrepair.ground.intake.data import data_file
from conrepair.ground.runtime.errors import DataError, UsageError

ARRAY = np.arange(24, dtype=np.float32).reshape(6, 4)


def read(data: Any, folder: Path, **options: Any) -> dict[str, Any]:
    path = data_file(data, folder / "given", **options)
    assert path is not None
    return {name: np.array(array) for name, array in read_tensors(path).items()}


def test_paths_and_nothing_stay(tmp_path: Path) -> None:
    assert data_file(tmp_path / "photos", tmp_path / "given") == tmp_path / "photos"
    (tmp_path / "data.npz").symlink_to("blob")  # as in a cache of a hub
    assert data_file(tmp_path / "data.npz", tmp_path / "given") == tmp_path / "data.npz"
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


@pytest.mark.parametrize(
    "name", ["file", "allow_pickle", "args", "kwds", "a/b", "../../x", "x.npy", "é", "serving:0"]
)
def test_any_input_can_be_named(name: str, tmp_path: Path) -> None:
    found = read({name: ARRAY, "other": ARRAY + 1}, tmp_path)
    assert list(found) == [name, "other"]
    np.testing.assert_array_equal(found[name], ARRAY)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["data.npz"]


def test_types_that_numpy_has_from_others(tmp_path: Path) -> None:
    import ml_dtypes
    import torch

    for array in (ARRAY.astype(ml_dtypes.bfloat16), torch.from_numpy(ARRAY).bfloat16()):
        found = read({"x": array}, tmp_path)["x"]
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, ARRAY)


class Broken:
    def __array__(self, *_: Any) -> Any:
        raise RuntimeError("no array")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (ARRAY.astype(complex), "data holds values of type complex128"),
        ({"x": np.array([None])}, r"data\['x'\] holds values of type object"),
        ({"x": None}, r"data\['x'\] is None: give an array"),
        ({}, "data is an empty mapping"),
        ({"a\0": ARRAY}, "a key of data is"),
        ({"\ud800": ARRAY}, "a key of data is"),
        ({"x" * 2000: ARRAY}, "a key of data is"),
        ({None: ARRAY}, "a key of data is None"),
        ({"x": ARRAY, "x.npy": ARRAY}, "tells apart"),
        ({"x": ARRAY, "y": ARRAY[:2]}, r"x \[6, "),
        (ARRAY[:0], "holds no sample"),
        (np.float32(1), "a single number"),
        (np.array(1.0), "a single number"),
        (Broken(), "can't be made an array: RuntimeError: no array"),
        ([(None, 1)], "batch 0 of the data"),
        ("a\0", "data: "),
    ],
)
def test_data_that_cant_be_meant_is_named(data: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=words):
        data_file(data, tmp_path)


def test_what_is_no_data(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="data is 3: give a path, an array"):
        data_file(3, tmp_path)

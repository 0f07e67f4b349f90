"""Outputs that were computed elsewhere: as one file, as a folder of outputs or of samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from conrepair.ground.data.recorded import is_recorded, outputs_among, read_recorded
from conrepair.ground.runtime.errors import DataError

SCORES = np.arange(12, dtype=np.float32).reshape(4, 3)
BOXES = np.arange(32, dtype=np.int64).reshape(4, 2, 4)


def _one_file(folder: Path) -> Path:
    np.savez(folder / "out.npz", scores=SCORES, boxes=BOXES)
    return folder / "out.npz"


def _of_outputs(folder: Path) -> Path:
    np.save(folder / "scores.npy", SCORES)
    np.save(folder / "boxes.npy", BOXES)
    return folder


def _of_samples(folder: Path) -> Path:
    for place, (scores, boxes) in enumerate(zip(SCORES, BOXES, strict=True)):
        np.savez(folder / f"{8 + place}.npz", scores=scores, boxes=boxes)  # 10 comes behind 9
    return folder


def _of_batches_of_one(folder: Path) -> Path:
    for place in range(len(SCORES)):
        np.savez(folder / f"sample_{place}.npz", scores=SCORES[place : place + 1], boxes=BOXES[place : place + 1])
    return folder


@pytest.mark.parametrize("write", [_one_file, _of_outputs, _of_samples, _of_batches_of_one])
def test_each_way_to_keep_them_gives_the_same(write: Callable[[Path], Path], tmp_path: Path) -> None:
    path = write(tmp_path)
    assert is_recorded(path)
    found = read_recorded(path)
    assert set(found) == {"scores", "boxes"}
    np.testing.assert_array_equal(found["scores"], SCORES)
    np.testing.assert_array_equal(found["boxes"], BOXES)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"a.npy": SCORES, "b.npz": {"x": SCORES}}, "holds .npy and .npz files"),
        ({"a.npy": SCORES, "b.npy": SCORES[:2]}, r"found a: \[4, 3\], b: \[2, 3\]"),
        ({"0.npz": {"x": SCORES}, "1.npz": {"y": SCORES}}, "one lacks x"),
        ({"0.npz": {"x": SCORES}, "1.npz": {"x": SCORES[:, :2]}}, r"\[4, 3\] in sample 0 and \[4, 2\] in sample 1"),
    ],
)
def test_what_does_not_fit_together_is_said(files: Mapping[str, Any], words: str, tmp_path: Path) -> None:
    for name, value in files.items():
        if name.endswith(".npy"):
            np.save(tmp_path / name, value)
        else:
            np.savez(tmp_path / name, **value)
    with pytest.raises(DataError, match=words):
        read_recorded(tmp_path)


def test_a_pickle_is_not_read(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="without pickles"):
        read_recorded(tmp_path / "x.npy")


def test_other_folders_hold_none(tmp_path: Path) -> None:
    (tmp_path / "saved_model.pb").touch()
    assert not is_recorded(tmp_path)
    assert not is_recorded(tmp_path / "gone.npz")


@pytest.mark.parametrize(
    ("arrays", "names", "wanted"),
    [
        (["a", "b"], ["b", "a"], {"b": "b", "a": "a"}),
        (["a", "inner"], ["a"], {"a": "a"}),
        (["arr_0", "arr_1"], ["a", "b"], {"a": "arr_0", "b": "arr_1"}),
        ([""], ["a"], {"a": ""}),
        (["x", "y"], ["a"], {"x": "x", "y": "y"}),
    ],
)
def test_outputs_are_told_by_name_then_by_order(arrays: list[str], names: list[str], wanted: dict[str, str]) -> None:
    held: dict[str, npt.NDArray[Any]] = dict.fromkeys(arrays, SCORES)
    assert outputs_among(held, names) == wanted

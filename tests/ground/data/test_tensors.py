"""Files of arrays that are none."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from conrepair.ground.data.tensors import read_tensors
from conrepair.ground.runtime.errors import DataError


def test_a_member_that_is_no_array_is_named(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    np.savez(path, x=np.zeros((2, 3), np.float32))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(DataError, match=r"its member readme.txt is no array, but 5 bytes"):
        read_tensors(path)


def test_an_array_larger_than_any_memory_is_refused(tmp_path: Path) -> None:
    header = io.BytesIO()
    shape = (1 << 40, 1 << 10)
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": shape})
    (tmp_path / "a.npy").write_bytes(header.getvalue())
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", header.getvalue())
    for name in ("a.npy", "a.npz"):
        with pytest.raises(DataError, match=name):
            read_tensors(tmp_path / name)


def test_arrays_that_unpack_to_more_than_they_may_are_refused(tmp_path: Path) -> None:
    zeros = np.zeros((70 << 10, 1 << 10), np.float32)
    np.savez_compressed(tmp_path / "data.npz", x=zeros)
    with pytest.raises(DataError, match=r"unpacks to 0\.3 GiB \(limit 0\.2, for a file of 0\.3 MiB\).*np\.savez"):
        read_tensors(tmp_path / "data.npz")
    np.savez_compressed(tmp_path / "small.npz", x=zeros[: 10 << 10])
    assert len(read_tensors(tmp_path / "small.npz")["x"]) == 10 << 10

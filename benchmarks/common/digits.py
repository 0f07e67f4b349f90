"""Handwritten digits of 8 x 8 pixels: scikit-learn's file, without scikit-learn."""

from __future__ import annotations

import gzip
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.ground.zoo.packages import PackageArchive, fetch

__all__ = ["read_digits"]

_FILE = "digits.csv.gz"
_PIXELS, _HIGHEST = 8, 16.0
_PACKAGE = PackageArchive(
    "scikit-learn",
    "1.7.2",
    "scikit_learn-1.7.2-cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
    "89877e19a80c7b11a2891a27c21c4894fb18e2c2e077815bcade10d34287b20d",
)


def read_digits() -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Pictures [1797, 1, 8, 8] of values 0 to 1, and what they show.

    Raises:
        FetchError: if the package can't be fetched.
    """
    folder = fetch(_PACKAGE, _select)
    with gzip.open(folder / _FILE, "rt") as stream:
        table: npt.NDArray[Any] = np.loadtxt(stream, delimiter=",")
    pictures = (table[:, :-1] / _HIGHEST).astype(np.float32).reshape(-1, 1, _PIXELS, _PIXELS)
    return pictures, table[:, -1].astype(np.int64)


def _select(path: PurePosixPath | str) -> str | None:
    name = PurePosixPath(path).name
    return name if name == _FILE else None

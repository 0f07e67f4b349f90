"""Tensors from .npz and .npy files, first axis samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.data.array_files import read_arrays
from conrepair.runtime.archive import ArchiveError
from conrepair.runtime.errors import DataError

__all__ = ["read_tensors"]


def read_tensors(path: Path, limit: int | None = None) -> dict[str, npt.NDArray[Any]]:
    """Open a file of tensors.

    Args:
        path: An .npz file with one array an input, or an .npy file for a model with one input.
        limit: Take the first so many samples.

    Returns:
        Arrays by name (an .npy file's by the empty name), memory-mapped where the format allows it.

    Raises:
        DataError: if the file is missing, damaged, empty, holds pickles, or its arrays differ in length.
    """
    if not path.is_file():
        raise DataError(f"{path}: no such data file. Give an .npz or .npy file.")
    try:
        arrays = read_arrays(path)
    except ArchiveError as error:
        raise DataError(
            f"{path} isn't read: {error}. It may be damaged or cut off; numbers that repeat pack well: save them "
            "with np.savez, uncompressed, or as .npy, which isn't read as a whole."
        ) from error
    except (OSError, ValueError, EOFError, KeyError) as error:
        raise DataError(f"{path} can't be read as .npz or .npy without pickles: {error}") from error
    except Exception as error:  # zipfile and zlib raise their own types for damaged archives
        raise DataError(f"{path} is damaged: {type(error).__name__}: {error}") from error
    for name, value in arrays.items():
        if not isinstance(value, np.ndarray):
            raise DataError(f"{path}: its member {name} is no array, but {len(value)} bytes of something. Remove it.")
    if not arrays:
        raise DataError(f"{path} holds no array.")
    lengths = {name: len(array) if array.ndim else -1 for name, array in arrays.items()}
    if -1 in lengths.values() or len(set(lengths.values())) != 1:
        listing = ", ".join(f"{name or 'array'}: {list(array.shape)}" for name, array in arrays.items())
        raise DataError(
            f"{path}: the first axis of every array must be the samples, and of the same length; found {listing}."
        )
    count = next(iter(lengths.values()))
    if count == 0:
        raise DataError(f"{path} holds no sample (its arrays have length 0).")
    return {name: array[: limit or count] for name, array in arrays.items()}

"""Tensors from .npz and .npy files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.ground.data.sample_axes import common_length
from conrepair.ground.data.stored_values import read_arrays
from conrepair.ground.runtime.errors import DataError
from conrepair.ground.runtime.files.archive import ArchiveError


def read_tensors(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Open a file of tensors.

    Args:
        path: An .npz file with one array an input, or an .npy file for a model with one input.

    Returns:
        Arrays by name (an .npy file's by the empty name), memory-mapped where the format allows it.

    Raises:
        DataError: if the file is missing, damaged, empty, holds pickles, or has arrays of other numbers of samples.
    """
    arrays = opened_arrays(path)
    shapes = {name: array.shape for name, array in arrays.items()}
    count = common_length(shapes)
    if count is None:
        listing = ", ".join(f"{name or 'array'}: {list(shape)}" for name, shape in shapes.items())
        raise DataError(
            f"{path}: every array must have its samples along the first axis, or where the model's input has them, "
            f"and all as many; found {listing}."
        )
    if not count:
        raise DataError(f"{path} holds no sample (its arrays have length 0).")
    return arrays


def opened_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Open a file of arrays, whatever their axes are.

    Args:
        path: An .npz or .npy file.

    Returns:
        As `read_tensors`.

    Raises:
        DataError: if the file is missing, damaged, empty, or holds pickles.
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
    return arrays


def sample_count(path: Path) -> int:
    """How many samples a file of tensors has.

    Args:
        path: Of the file.

    Raises:
        DataError: see `read_tensors`.
    """
    return common_length({name: array.shape for name, array in read_tensors(path).items()}) or 0

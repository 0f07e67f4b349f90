"""Data that somebody has in Python, as a file of arrays."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.runtime.errors import DataError, UsageError
from conrepair.runtime.path_text import checked_path, real_path

__all__ = ["data_file"]

_Arrays = dict[str, npt.NDArray[Any]]


def data_file(data: Any, folder: Path, *, limit: int | None = None) -> Path | None:
    """Write data into a folder, unless it's a path already.

    Args:
        data: A path (a folder of photos, .npz, .npy), an array (first axis samples) for a model of one input, a
            mapping of arrays by input, or what gives batches of either when it's iterated over: a generator, a
            `DataLoader`, a `tf.data.Dataset`. Of a batch that is a tuple or a list the first item is the input.
            None: nothing.
        folder: For the file; made where one is written.
        limit: Samples to take of what is iterated over; None: all.

    Raises:
        DataError: if it gives no sample, or its batches don't fit together.
        UsageError: if it's nothing of that.
    """
    if data is None:
        return None
    if isinstance(data, str | os.PathLike):
        return real_path(checked_path(data))
    arrays = _arrays(data)
    if arrays is None:
        if not isinstance(data, Iterable):
            raise UsageError(
                f"data is a {type(data).__qualname__}. Give a path, an array, a mapping of arrays by input, or "
                "something that gives batches of these."
            )
        arrays = _joined(data, limit)
    folder.mkdir(parents=True, exist_ok=True)
    if list(arrays) == [""]:
        np.save(folder / "data.npy", arrays[""], allow_pickle=False)
        return folder / "data.npy"
    np.savez(folder / "data.npz", **arrays)  # type: ignore[arg-type]
    return folder / "data.npz"


def _joined(batches: Iterable[Any], limit: int | None) -> _Arrays:
    """The samples of all batches, by input."""
    found: list[_Arrays] = []
    count = 0
    for number in itertools.count():
        if limit is not None and count >= limit:
            break
        if number == 0:
            source = iter(batches)
        try:
            batch = next(source)
        except StopIteration:
            break
        except Exception as error:
            raise DataError(f"batch {number} of the data failed: {type(error).__name__}: {error}") from error
        arrays = _arrays(batch[0] if isinstance(batch, tuple | list) and batch else batch)
        if arrays is None:
            raise DataError(f"batch {number} of the data is a {type(batch).__qualname__}, which holds no arrays.")
        if found and set(arrays) != set(found[0]):
            raise DataError(
                f"batch {number} of the data has the inputs {sorted(arrays)}, the first {sorted(found[0])}."
            )
        found.append(arrays)
        count += len(next(iter(arrays.values())))
    if not found:
        raise DataError("the data gave no batch: it's empty, or was iterated over before.")
    try:
        joined = {name: np.concatenate([batch[name] for batch in found]) for name in found[0]}
    except ValueError as error:
        raise DataError(f"the batches of the data don't fit together: {error}") from error
    return {name: array[:limit] for name, array in joined.items()}


def _arrays(value: Any) -> _Arrays | None:
    """Arrays by input ("" for the only one); None where the value holds none."""
    if isinstance(value, Mapping):
        found = {str(name): _array(item) for name, item in value.items()}
        if not found or any(item is None for item in found.values()):
            return None
        return {name: item for name, item in found.items() if item is not None}
    array = _array(value)
    return None if array is None else {"": array}


def _array(value: Any) -> npt.NDArray[Any] | None:
    """An array, or a tensor of PyTorch, TensorFlow or another library as one."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    if not isinstance(value, np.ndarray):
        if not hasattr(value, "__array__") or hasattr(value, "__next__"):
            return None
        value = np.asarray(value)
    if value.dtype.kind not in "fiub" or not value.ndim:
        return None
    return np.ascontiguousarray(value)

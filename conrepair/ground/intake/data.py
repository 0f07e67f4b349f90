"""Data that somebody has in Python, as a file of arrays."""

from __future__ import annotations

import itertools
import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.ground.data.sample_axes import common_length
from conrepair.ground.data.stored_values import ONLY_ELSEWHERE, fileable
from conrepair.ground.intake.arguments import path, refused
from conrepair.ground.runtime.errors import DataError, UsageError
from conrepair.ground.runtime.words import shortened

_Arrays = dict[str, npt.NDArray[Any]]

_KNOWN = "a path, an array, a mapping of arrays by input, or something that gives batches of these"
_MEMBER, _LONGEST, _SHOWN = ".npy", 1000, 60


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
        return Path(path("data", data)).absolute()
    arrays = arrays_of(data, "data")
    if arrays is None:
        if not isinstance(data, Iterable):
            raise refused("data", data, _KNOWN)
        arrays = _joined(data, limit)
    _check_lengths(arrays)
    folder.mkdir(parents=True, exist_ok=True)
    if list(arrays) == [""]:
        np.save(folder / "data.npy", arrays[""], allow_pickle=False)
        return folder / "data.npy"
    write_arrays(folder / "data.npz", arrays)
    return folder / "data.npz"


def _check_lengths(arrays: _Arrays) -> None:
    if any(not len(array) for array in arrays.values()):
        raise DataError("data holds no sample: the first axis of an array is the samples, and its length is 0.")
    if common_length({name: array.shape for name, array in arrays.items()}) is None:
        told = ", ".join(f"{shortened(name, _SHOWN)} {list(array.shape)}" for name, array in arrays.items())
        raise DataError(
            "data has as many samples for each input, along the first axis of its array, or where the input has "
            f"them. Given: {told}."
        )


def write_arrays(file: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """As numpy.savez, whose own arguments (file, allow_pickle) no input could be called.

    Args:
        file: An .npz.
        arrays: By name.
    """
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def _joined(batches: Iterable[Any], limit: int | None) -> _Arrays:
    """The samples of all batches, by input."""
    found: list[_Arrays] = []
    source: Iterator[Any] | None = None
    count = 0
    for number in itertools.count():
        if limit is not None and count >= limit:
            break
        try:
            source = iter(batches) if source is None else source
            batch = next(source)
        except StopIteration:
            break
        except Exception as error:
            raise DataError(f"batch {number} of the data failed: {type(error).__name__}: {error}") from error
        arrays = arrays_of(
            batch[0] if isinstance(batch, tuple | list) and batch else batch, f"batch {number} of data"
        )
        if arrays is None:
            raise DataError(
                f"batch {number} of the data is a {type(batch).__qualname__}, which holds no arrays. Give {_KNOWN}."
            )
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


def arrays_of(value: Any, what: str) -> dict[str, npt.NDArray[Any]] | None:
    """Arrays by name ("" for the only one); None where the value is neither an array nor a mapping.

    Args:
        value: Any.
        what: It's called in messages.

    Raises:
        UsageError: if a mapping holds something else, or names that no file tells apart.
    """
    if not isinstance(value, Mapping):
        array = _array(value, what)
        return None if array is None else {"": array}
    found: _Arrays = {}
    for key, item in value.items():
        name, array = _input_name(key, what), _array(item, f"{what}[{key!r}]")
        if array is None:
            raise refused(f"{what}[{key!r}]", item, "an array, first axis samples")
        if name in found:
            raise UsageError(f"{what} has two arrays for the input {shortened(name, _SHOWN)}. Give one.")
        found[name] = array
    if not found:
        raise UsageError(f"{what} is an empty mapping. Give an array for each input.")
    if twice := [name for name in found if f"{name}{_MEMBER}" in found]:
        raise UsageError(
            f"{what} has inputs {twice[0]} and {twice[0]}{_MEMBER}, which no file tells apart. Rename one."
        )
    return found


def _input_name(key: Any, what: str) -> str:
    """A key as the name of an input, as a file can hold it."""
    name = str(key) if isinstance(key, int) else key
    try:
        right = isinstance(name, str) and "\0" not in name and len(name.encode()) <= _LONGEST
    except UnicodeEncodeError:
        right = False
    if not right:
        raise refused(f"a key of {what}", key, f"an input's name: UTF-8 of at most {_LONGEST:,} bytes without \\0")
    return str(name)


def _array(value: Any, what: str) -> npt.NDArray[Any] | None:
    """An array, or a tensor of PyTorch, TensorFlow or another library as one; None where it's something else."""
    if isinstance(value, np.ndarray):
        return _checked(value, what)
    if isinstance(value, type) or hasattr(value, "__next__"):
        return None
    if not hasattr(value, "__array__") and not hasattr(value, "detach"):
        return None
    try:
        return _checked(np.asarray(_of_torch(value)), what)
    except UsageError:
        raise
    except Exception as error:
        raise DataError(
            f"{what}, of type {type(value).__qualname__}, can't be made an array: {type(error).__name__}: {error}"
        ) from error


def _of_torch(value: Any) -> Any:
    """A tensor that NumPy takes; of types that it hasn't as float32, which holds all their values."""
    if not hasattr(value, "detach"):
        return value
    tensor = value.detach().cpu()
    wide = str(getattr(tensor, "dtype", "")).removeprefix("torch.")
    return tensor.float() if wide.startswith(ONLY_ELSEWHERE) else tensor


def _checked(array: npt.NDArray[Any], what: str) -> npt.NDArray[Any]:
    """An array that a file of tensors can hold."""
    array = fileable(array)
    if array.dtype.kind == "O" and all(isinstance(item, str) for item in array.reshape(-1)):
        array = array.astype(np.str_)
    if array.dtype.kind not in "fiubU":
        raise UsageError(
            f"{what} holds values of type {array.dtype}. Give real numbers, whole numbers, truth values or texts."
        )
    if not array.ndim:
        raise UsageError(f"{what} is a single number. Give an array whose first axis is the samples.")
    return np.ascontiguousarray(array)

"""Real numbers as tensors store them, and back; arrays that come row by row, in .npy files."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.ground.data.tensor_spec import NARROW_INTEGERS, Quantization, TensorSpec, numpy_dtype
from conrepair.ground.runtime.errors import DataError
from conrepair.ground.runtime.files.archive import ArchiveError, is_archive, opened_archive

# Files of arrays (.npz, .npy), whose sizes are asked before any is read.


def read_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Open a file of arrays; nothing in it is unpickled.

    Args:
        path: An .npz or .npy file.

    Returns:
        Arrays by name; an .npy file's by the empty name, memory-mapped. What isn't an array in an archive is bytes.

    Raises:
        ValueError: if it's damaged, holds pickles, or unpacks to more than it may
            (`conrepair.ground.runtime.files.archive`).
        OSError: if it can't be read.
        EOFError: if it's empty.
    """
    if is_archive(path):
        with opened_archive(path, of_files=False):  # whose sizes are asked here
            pass
    try:
        loaded = np.load(path, mmap_mode="r", allow_pickle=False)
        return {"": loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
    except (zipfile.BadZipFile, zlib.error) as error:
        raise ArchiveError(f"it's damaged: {error}") from error


Array = npt.NDArray[Any]


class StoredRows:
    """An .npy file of zeros, whose rows are written as they come; it needn't fit into memory.

    It isn't mapped: each map is an open file, of which a process may have about a thousand, and a disk that is full
    would end the process by a signal. Nothing waits for the disk: who reads the file sees what was written.

    Args:
        path: Of the file, which is made.
        dtype: Of its elements, which are no Python objects.
        shape: Rows first.

    Raises:
        ValueError: if they are.
        OSError: if it can't be written.

    Attributes:
        shape: As given.
    """

    def __init__(self, path: Path, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> None:
        self._path, self._dtype, self.shape = path, np.dtype(dtype), shape
        if self._dtype.hasobject:
            raise ValueError("an array of Python objects has no rows of bytes")
        self._row = self._dtype.itemsize * int(np.prod(shape[1:], dtype=np.int64))
        header = {"descr": np.lib.format.dtype_to_descr(self._dtype), "fortran_order": False, "shape": shape}
        with path.open("wb") as stream:
            np.lib.format.write_array_header_1_0(stream, header)
            self._start = stream.tell()
            stream.truncate(self._start + self._row * shape[0])

    def put(self, start: int, rows: Array) -> None:
        """Write rows.

        Args:
            start: The first one's place.
            rows: Of the same shape but for their number.

        Raises:
            OSError: if they can't be written.
        """
        content = np.ascontiguousarray(rows, self._dtype)
        with self._path.open("r+b", buffering=0) as stream:
            stream.seek(self._start + start * self._row)
            left = content.reshape(-1).view(np.uint8).data
            while left:
                left = left[stream.write(left) :]


_BLOCK = 1 << 15
ONLY_ELSEWHERE = ("bfloat16", "float8")  # types that NumPy has from other libraries, and no file of its own


def to_stored(spec: TensorSpec, array: Array) -> Array:
    """An array as a tensor takes it: real numbers are quantized for a tensor that stores quantized ones.

    Args:
        spec: The tensor.
        array: Of its shape (a symbolic size may be anything); whole numbers are taken as they are stored.

    Raises:
        DataError: if shape, type or values don't fit.
    """
    if len(array.shape) != len(spec.shape) or any(
        isinstance(wanted, int) and wanted != given for wanted, given in zip(spec.shape, array.shape, strict=True)
    ):
        raise DataError(
            f"input {spec} can't take data of shape {list(array.shape)}. Change the data, or the recipe's "
            "size and layout, to fit the model."
        )
    if (spec.dtype == "string") != (array.dtype.kind in "OSU"):
        raise DataError(f"input {spec} can't take data of type {array.dtype}.")
    if spec.dtype == "string":
        return array
    wanted = numpy_dtype(spec.dtype)
    if spec.quantization is not None and array.dtype.kind == "f":
        return quantized(array, spec.quantization, wanted)
    if array.dtype == wanted:
        return np.asarray(array, order="C")
    whole = wanted.kind in "biu" or spec.dtype in NARROW_INTEGERS
    if whole and array.dtype.kind not in "biu":
        raise DataError(f"input {spec} takes whole numbers; the data is {array.dtype}.")
    if array.dtype.kind == "c" or (whole and not _fits(array, wanted)):
        raise DataError(f"input {spec} can't hold the data's values ({array.dtype}).")
    return np.asarray(array, dtype=wanted, order="C")


def to_real(spec: TensorSpec, array: Array) -> Array:
    """What a tensor's stored values stand for: float32 for a quantized tensor, else the values themselves.

    Texts, which libraries give as objects, are numpy's own.
    """
    if spec.dtype == "string":
        return as_text(array)
    return array if spec.quantization is None else real_values(array, spec.quantization)


def fileable(array: Array) -> Array:
    """The same numbers as NumPy's files hold them: float32 or bytes, which have them all, for types that it lacks."""
    if array.dtype.name.startswith(("int4", "uint4", "int2", "uint2")):
        return array.astype(np.uint8 if array.dtype.name.startswith("u") else np.int8)
    return array.astype(np.float32) if array.dtype.name.startswith(ONLY_ELSEWHERE) else array


def as_text(array: Array) -> Array:
    """Texts as numpy's own type, which needs no pickles: those that are bytes are UTF-8."""
    if array.dtype.kind != "O":
        return array.astype(np.str_)
    items = [item.decode(errors="replace") if isinstance(item, bytes) else str(item) for item in array.reshape(-1)]
    return np.array(items, np.str_).reshape(array.shape)


def real_values(array: Array, quantization: Quantization) -> Array:
    """What stored whole numbers stand for, float32."""
    if array.dtype.itemsize <= 2:
        # Exact in float32, as the difference of such numbers is.
        real: Array = array.astype(np.float32)
        real -= quantization.zero_point
    else:
        real = (array.astype(np.int32) - quantization.zero_point).astype(np.float32)
    real *= np.float32(quantization.scale)
    return real


def quantized(array: Array, quantization: Quantization, wanted: np.dtype[Any]) -> Array:
    """The nearest whole numbers that stand for real ones, of the wanted type."""
    # Block by block: whoever feeds all tensors of a network spends most of the time here, in the cache or not.
    limits = np.iinfo(wanted)
    result = np.empty(array.shape, wanted)
    source, target = array.reshape(-1), result.reshape(-1)
    for begin in range(0, source.size, _BLOCK):
        stored = np.asarray(source[begin : begin + _BLOCK] / np.float32(quantization.scale))
        np.rint(stored, out=stored)
        stored += quantization.zero_point
        target[begin : begin + _BLOCK] = np.clip(stored, limits.min, limits.max, out=stored)
    return result


def _fits(array: Array, wanted: np.dtype[Any]) -> bool:
    """Whether a cast to another type of whole numbers changes no value."""
    cast = array.astype(wanted)
    return bool(np.array_equal(array, cast if wanted.kind in "biu" else cast.astype(np.int16)))

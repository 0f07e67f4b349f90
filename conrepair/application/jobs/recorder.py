"""Write what a model gives into arrays on disk, batch by batch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.ground.data.ragged import as_rows
from conrepair.ground.data.sample_axes import OutputAxes
from conrepair.ground.data.stored_values import StoredRows
from conrepair.ground.runtime.errors import InferenceError
from conrepair.verdicts.evaluate.run import STEADY, difference

Array = npt.NDArray[Any]

_KEPT = 1 << 20  # values of an output of a random model, of each repeated run


class SizesVaryError(Exception):
    """An output has no row for each sample of a batch, or another size in another batch."""


class Recorder:
    """Keeps outputs: as they come where each sample has one row of one size; in memory until the end elsewhere."""

    def __init__(self, folder: Path, count: int, axes: OutputAxes, *, fixed: bool, singly: bool = False) -> None:
        """Nothing has come yet.

        Args:
            folder: Receives the arrays.
            count: Of all samples.
            axes: Where outputs have their samples.
            fixed: Whether the model says the size of its batches: an output that has no row for each sample belongs
                to all of them then.
            singly: Whether each batch is taken by itself, so that sizes may vary.
        """
        self._folder, self._count, self._axes = folder, count, axes
        self._fixed, self._singly = fixed, singly
        self._kept: list[_Rows | _Texts | _Ragged] = []
        self._first: list[bytes] = []
        self._seconds = np.zeros(count)
        self._done = 0
        self.starts: list[int] = []

    def record(self, start: int, valid: int, size: int, outputs: Mapping[str, Array], seconds: float) -> None:
        """Keep the outputs of samples [start, start + valid) of a batch of `size`.

        Raises:
            InferenceError: if there's none.
            SizesVaryError: if batches have to be taken singly.
        """
        if not outputs:
            raise InferenceError("the model has no output that is a tensor, so there is nothing to compare.")
        rows = [self._rows(name, array, valid, size) for name, array in outputs.items()]
        self.starts.append(start)
        if not self._kept:
            self._kept = [self._place(index, array, size) for index, array in enumerate(rows)]
            self._first = [_digest(array) for array in rows]
        for kept, array in zip(self._kept, rows, strict=True):
            kept.put(start, array)
        self._seconds[start : start + valid] = seconds / size
        self._done = start + valid

    def repeats(self, valid: int, size: int, outputs: Mapping[str, Array]) -> bool:
        """Whether the first batch gave the same bits before; if not, keep what it gives now."""
        rows = [self._rows(name, array, valid, size) for name, array in outputs.items()]
        same = self._first == [_digest(array) for array in rows]
        if not same:
            for index, array in enumerate(rows):
                np.save(self._folder / f"again_{index}.npy", array)
        return same

    def repeated(self, valid: int, size: int, runs: Iterable[Mapping[str, Array]]) -> None:
        """Keep what more runs of the first batch give, if that's random, of as many samples as fit into a file."""
        kept: list[list[Array]] = []
        for outputs in runs:
            rows = [self._rows(name, array, valid, size) for name, array in outputs.items()]
            kept.append([array[: max(1, _KEPT * len(array) // (array.size or 1))] for array in rows])
            if len(kept) == 2 and all(difference(*arrays) <= STEADY for arrays in zip(*kept, strict=True)):
                return  # sums in another order
        for index, arrays in enumerate(zip(*kept, strict=True)):
            if arrays[0].dtype.kind in "biuf" and len({array.shape for array in arrays}) == 1:
                np.save(self._folder / f"repeated_{index}.npy", np.stack(arrays))

    def finish(self) -> int:
        """Write what isn't yet, and how long it took; returns how many samples there are."""
        np.save(self._folder / "seconds.npy", self._seconds[: self._done])
        for kept in self._kept:
            kept.finish(self._done)
        return self._done

    def _rows(self, name: str, array: Array, valid: int, size: int) -> Array:
        array = self._axes.in_front(name, array, size)
        if array.dtype.kind == "V":  # bfloat16 and the like, which files of NumPy have no name for
            array = array.astype(np.float32)
        if self._singly:
            return array
        if array.ndim and len(array) == size:
            return array[:valid]
        if size == 1:
            return array[None]
        if self._fixed:
            return np.broadcast_to(array, (valid, *array.shape))
        raise SizesVaryError

    def _place(self, index: int, array: Array, size: int) -> _Rows | _Texts | _Ragged:
        if self._singly:
            return _Ragged(self._folder, index, self.starts, size)
        path = self._folder / f"output_{index}.npy"
        if array.dtype.kind == "U":
            return _Texts(path)
        return _Rows(path, array.dtype, (self._count, *array.shape[1:]))


class _Rows:
    """Rows of one size, on disk as they come."""

    def __init__(self, path: Path, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> None:
        self._path, self._stored = path, StoredRows(path, dtype, shape)

    def put(self, start: int, rows: Array) -> None:
        if self._stored.shape[1:] != rows.shape[1:]:
            raise SizesVaryError
        self._stored.put(start, rows)

    def finish(self, count: int) -> None:
        if count < self._stored.shape[0]:
            np.save(self._path, np.array(np.load(self._path, mmap_mode="r")[:count]))


class _Texts:
    """Texts, whose length only the last one tells."""

    def __init__(self, path: Path) -> None:
        self._path, self._parts = path, list[Array]()

    def put(self, start: int, rows: Array) -> None:
        if self._parts and self._parts[0].shape[1:] != rows.shape[1:]:
            raise SizesVaryError
        self._parts.append(rows)

    def finish(self, count: int) -> None:
        np.save(self._path, np.concatenate(self._parts)[:count])


class _Ragged:
    """What each batch gave, of any size: rows one behind the other, and how many each batch has."""

    def __init__(self, folder: Path, index: int, starts: Sequence[int], size: int) -> None:
        self._folder, self._index, self._starts, self._size = folder, index, starts, size
        self._parts: list[Array] = []

    def put(self, start: int, rows: Array) -> None:
        self._parts.append(rows)

    def finish(self, count: int) -> None:
        path, first = self._folder / f"output_{self._index}.npy", self._parts[0]
        if all(part.shape == first.shape for part in self._parts):
            batched = bool(first.ndim) and len(first) == self._size
            np.save(path, np.concatenate(self._parts)[:count] if batched else np.stack(self._parts))
            return
        rows, lengths = as_rows(self._parts)
        np.save(path, rows)
        known = np.zeros(count, np.int64)
        known[self._starts] = lengths
        np.save(self._folder / f"lengths_{self._index}.npy", known)


def _digest(array: Array) -> bytes:
    """What tells bits apart."""
    digest = hashlib.sha256(f"{array.dtype} {array.shape}".encode())
    digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.digest()

"""Activations of one batch, in mapped files when they are many: a network's may be several times the memory."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from conrepair.ground.graph.layer_graph import Array

_SMALL = 1 << 16  # bytes; smaller arrays aren't worth a file
_IN_MEMORY = 1 << 28  # bytes of larger ones that are kept as they come, uncopied; a file takes longer than to compute
_BLOCK = 1 << 26  # bytes of a file: few files, as each is an open one
_ALIGNMENT = 64

_Bytes = npt.NDArray[np.uint8]


class Shelf:
    """Arrays by name; one put under a name again replaces the other, in its place where it fits."""

    def __init__(self, folder: Path, *, memory: int = _IN_MEMORY) -> None:
        """Begin without tensors.

        Args:
            folder: For the files; made when it isn't there. They stay until it goes.
            memory: Bytes of arrays that are kept as they come, before files are made.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._held: dict[str, Array] = {}
        self._bytes, self._memory = 0, memory
        self._places: dict[str, _Bytes] = {}
        self._views: dict[str, Array] = {}
        self._block: _Bytes = np.empty(0, np.uint8)
        self._used = 0
        self._blocks = 0

    def __contains__(self, name: str) -> bool:
        return name in self._held or name in self._views

    def __getitem__(self, name: str) -> Array:
        """The array; a large one is mapped, which costs no memory of its own."""
        return self._held[name] if name in self._held else self._views[name]

    def put(self, name: str, array: Array) -> None:
        """Keep an array, which nobody changes from now on."""
        self._bytes -= _counted(self._held.pop(name, None))
        self._views.pop(name, None)
        if array.dtype.hasobject or self._bytes + _counted(array) <= self._memory:
            self._held[name] = array if _is_whole(array) else array.copy()
            self._bytes += _counted(array)
            return
        place = self._places.get(name)
        if place is None or place.size < array.nbytes:
            place = self._places[name] = self._reserve(array.nbytes)
        view = place[: array.nbytes].view(array.dtype).reshape(array.shape)
        np.copyto(view, array)
        self._views[name] = view

    def put_all(self, arrays: Iterable[tuple[str, Array]]) -> None:
        """Keep arrays by their names."""
        for name, array in arrays:
            self.put(name, array)
            del array  # so that nothing holds it while what gives the arrays computes the next

    def move(self, folder: Path) -> None:
        """Make files elsewhere from now on; arrays in those that are there stay, whether or not these are removed.

        Args:
            folder: Made when it isn't there.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._blocks, self._used = folder, 0, self._block.size

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each array."""
        return {name: self[name].shape for name in [*self._held, *self._views]}

    def _reserve(self, size: int) -> _Bytes:
        """A piece of a mapped file."""
        if self._used + size > self._block.size:
            path = self._folder / f"{self._blocks}.bin"
            self._block = np.memmap(path, np.uint8, "w+", shape=(max(size, _BLOCK),))
            self._blocks, self._used = self._blocks + 1, 0
        place = self._block[self._used : self._used + size]
        self._used += math.ceil(size / _ALIGNMENT) * _ALIGNMENT
        return place


def _counted(array: Array | None) -> int:
    """The bytes of an array, where they count."""
    return 0 if array is None or array.nbytes <= _SMALL else array.nbytes


def _is_whole(array: Array) -> bool:
    """Whether it holds no larger one in the memory."""
    return array.base is None or getattr(array.base, "nbytes", 0) <= array.nbytes

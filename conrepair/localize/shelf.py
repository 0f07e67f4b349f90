"""Activations of one batch, kept in mapped files when they are large: a network's may be many times the memory."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from conrepair.graph.layer_graph import Array

__all__ = ["Shelf"]

_IN_MEMORY = 1 << 16  # bytes; smaller arrays aren't worth a file
_BLOCK = 1 << 26  # bytes of a file: few files, as each is an open one
_ALIGNMENT = 64

_Bytes = npt.NDArray[np.uint8]


class Shelf:
    """Arrays by name; one put under a name again replaces the other, in its place where it fits."""

    def __init__(self, folder: Path) -> None:
        """Start empty.

        Args:
            folder: For the files; made when it isn't there. They stay until it goes.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._small: dict[str, Array] = {}
        self._places: dict[str, _Bytes] = {}
        self._views: dict[str, Array] = {}
        self._block: _Bytes = np.empty(0, np.uint8)
        self._used = 0
        self._blocks = 0

    def __contains__(self, name: str) -> bool:
        return name in self._small or name in self._views

    def __getitem__(self, name: str) -> Array:
        """The array; a large one is mapped, which costs no memory of its own."""
        return self._small[name] if name in self._small else self._views[name]

    def put(self, name: str, array: Array) -> None:
        """Keep an array."""
        if array.nbytes <= _IN_MEMORY or array.dtype.hasobject:
            self._views.pop(name, None)
            self._small[name] = array
            return
        self._small.pop(name, None)
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

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each array."""
        return {name: self[name].shape for name in [*self._small, *self._views]}

    def _reserve(self, size: int) -> _Bytes:
        """A piece of a mapped file."""
        if self._used + size > self._block.size:
            path = self._folder / f"{self._blocks}.bin"
            self._block = np.memmap(path, np.uint8, "w+", shape=(max(size, _BLOCK),))
            self._blocks, self._used = self._blocks + 1, 0
        place = self._block[self._used : self._used + size]
        self._used += math.ceil(size / _ALIGNMENT) * _ALIGNMENT
        return place

"""Activations of one batch, kept in files when they are large: a network's may be many times the memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from conrepair.graph.layer_graph import Array

__all__ = ["Shelf"]

_IN_MEMORY = 1 << 16  # bytes; smaller arrays aren't worth a file


class Shelf:
    """Arrays by name; one put under a name again replaces the other."""

    def __init__(self, folder: Path) -> None:
        """Start empty.

        Args:
            folder: For the files; they stay until the folder goes.
        """
        self._folder = folder
        self._arrays: dict[str, Array] = {}
        self._files: dict[str, Path] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._arrays or name in self._files

    def __getitem__(self, name: str) -> Array:
        """The array; one in a file is mapped, which costs no memory of its own."""
        if name in self._arrays:
            return self._arrays[name]
        return np.asarray(np.load(self._files[name], mmap_mode="r"))

    def put(self, name: str, array: Array) -> None:
        """Keep an array."""
        if array.nbytes <= _IN_MEMORY:
            self._arrays[name] = array
            return
        self._arrays.pop(name, None)
        path = self._files.setdefault(name, self._folder / f"{len(self._files)}.npy")
        np.save(path, array)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each array."""
        return {name: self[name].shape for name in dict.fromkeys([*self._arrays, *self._files])}

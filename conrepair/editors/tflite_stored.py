"""A TFLite file as it's stored: tables, numbers behind them, and files that the model carries."""

from __future__ import annotations

import copy
import mmap
from pathlib import Path
from typing import Any

import numpy as np

from conrepair.editors.tflite_appended import appended_files
from conrepair.networks.tflite_packing import is_outside, outside_bytes, packed
from conrepair.runtime.files import whole_output

__all__ = ["StoredModel"]

_MOST = 1 << 30  # bytes of numbers among a flatbuffer's tables, which end at 2 GB


class StoredModel:
    """Numbers stay where the file has them, as long as its tables can hold them.

    Attributes:
        model: The tables; all numbers are in their buffers.
    """

    def __init__(self, content: mmap.mmap, model: Any) -> None:
        """Move numbers that stand behind the tables into these, in place.

        Args:
            content: All of the file, which stays mapped.
            model: Its tables.

        Raises:
            NotEditableError: if it carries an archive of more than 4 GB.
        """
        self.model = model
        self._appended = appended_files(content)
        self._outside = {index for index, item in enumerate(self.model.buffers) if is_outside(item)}
        for index in self._outside:
            buffer = self.model.buffers[index]
            buffer.data = outside_bytes(content, buffer)
            buffer.offset = buffer.size = 0

    def content(self) -> bytes:
        """The model as it is now, without what it carries."""
        return b"".join(self._parts())

    def save(self, path: Path) -> None:
        """Write it whole, with what it carries behind.

        Raises:
            StorageError: if it can't be written.
        """
        parts = self._parts()
        if self._appended is not None:
            parts.append(self._appended.behind(sum(map(len, parts))))
        with whole_output(path) as temporary, temporary.open("wb") as stream:
            stream.writelines(parts)

    def _parts(self) -> list[Any]:
        held = {
            place: np.asarray(item.data, np.uint8)
            for place, item in enumerate(self.model.buffers)
            if item.data is not None and len(item.data) > 1
        }
        inside = sum(data.nbytes for place, data in held.items() if place not in self._outside)
        outside = held if inside > _MOST else {place: held[place] for place in sorted(self._outside & held.keys())}
        model = copy.copy(self.model)
        model.buffers = [copy.copy(item) for item in model.buffers]
        return packed(model, outside)

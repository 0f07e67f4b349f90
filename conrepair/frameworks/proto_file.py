"""ONNX files as messages, of a size that the format has: whatever is larger would only fill memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from conrepair.runtime.errors import ModelLoadError
from conrepair.runtime.ordinary_file import NotOrdinaryError, open_ordinary

if TYPE_CHECKING:
    import onnx

__all__ = ["read_proto"]

_LARGEST = (1 << 31) - 1  # bytes that Protobuf can read; larger weights are in files of their own


def read_proto(path: str | Path) -> onnx.ModelProto:
    """What an ONNX file says; weights in files of their own aren't read.

    Raises:
        ModelLoadError: if it's larger than such a file can be, or no file.
        OSError: if it can't be opened.
        DecodeError: if it's damaged.
    """
    import onnx

    try:
        with open_ordinary(path, _LARGEST) as stream:
            return onnx.load(stream, format="protobuf", load_external_data=False)
    except NotOrdinaryError as error:
        raise ModelLoadError(f"{error}: it's no ONNX model.") from error

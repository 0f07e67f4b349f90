"""What converters from ONNX to ONNX share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["FILE", "is_large", "save_onnx"]

FILE = "model.onnx"
_DATA = "model.onnx.data"
_LIMIT = 1 << 30  # bytes of weights kept inside the file; protobuf itself ends at 2 GiB


def is_large(proto: Any) -> bool:
    """Whether the weights belong into a file of their own."""
    return bool(sum(tensor.ByteSize() for tensor in proto.graph.initializer) > _LIMIT)


def save_onnx(proto: Any, folder: Path) -> str:
    """Write a model, its weights beside it when they are large, and return the file's name."""
    import onnx

    if is_large(proto):
        onnx.save(proto, folder / FILE, save_as_external_data=True, location=_DATA)
    else:
        onnx.save(proto, folder / FILE)
    return FILE

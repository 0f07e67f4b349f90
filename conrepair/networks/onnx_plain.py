"""Types, shapes and attributes of ONNX graphs as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir

from conrepair.graph.layer_graph import Attribute

__all__ = ["dtype_name", "ints", "plain_value", "stripped"]


def dtype_name(value: onnx_ir.Value) -> str:
    """What numpy calls a tensor's type; "object" for text and for what isn't a tensor."""
    if not isinstance(value.type, onnx_ir.TensorType) or value.type.dtype == onnx_ir.DataType.STRING:
        return "object"
    return str(value.type.dtype.numpy().name)


def ints(shape: Sequence[int] | None) -> tuple[int, ...] | None:
    """A shape as a tuple."""
    return None if shape is None else tuple(int(size) for size in shape)


def stripped(names: Sequence[str]) -> tuple[str, ...]:
    """Names without the "" at the end."""
    found = list(names)
    while found and not found[-1]:
        found.pop()
    return tuple(found)


def plain_value(value: Any) -> Attribute:
    """An attribute as numbers, text, or tuples of those; None for what is none of them."""
    # Numbers first: a forest has a million of them, and to ask for a tensor's protocol takes long.
    if isinstance(value, float):
        return float(str(np.float32(value)))  # files have 32 bits: 1e-5 rather than 9.99999974e-06
    if isinstance(value, int | str):
        return value
    if isinstance(value, onnx.TensorProto):
        value = onnx.numpy_helper.to_array(value)
    elif isinstance(value, onnx_ir.TensorProtocol):
        value = value.numpy()
    if isinstance(value, np.ndarray):
        return plain_value(value.reshape(-1)[0].item()) if value.size == 1 else None
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list | tuple):
        return tuple(plain_value(item) for item in value)  # type: ignore[return-value]
    return None

"""TFLite files as objects of the format's schema, to change by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["constant", "open_tflite", "operators", "set_constant", "write_tflite"]


def open_tflite(path: Path) -> Any:
    """A file's content."""
    from ai_edge_litert import schema_py_generated as schema

    return schema.ModelT.InitFromPackedBuf(path.read_bytes())


def write_tflite(model: Any, path: Path) -> None:
    """Write it."""
    import flatbuffers

    builder = flatbuffers.Builder(0)
    builder.Finish(model.Pack(builder), b"TFL3")
    path.write_bytes(bytes(builder.Output()))


def operators(model: Any, sort: str) -> list[Any]:
    """All operators of a sort, as the schema calls it."""
    from ai_edge_litert import schema_py_generated as schema

    wanted = getattr(schema.BuiltinOperator, sort)
    codes = [max(code.builtinCode, code.deprecatedBuiltinCode) for code in model.operatorCodes]
    return [item for item in model.subgraphs[0].operators if codes[item.opcodeIndex] == wanted]


def constant(model: Any, operator: Any, place: int) -> np.ndarray[Any, Any]:
    """Numbers that an operator reads."""
    from ai_edge_litert import schema_py_generated as schema

    tensor = model.subgraphs[0].tensors[operator.inputs[place]]
    names = {value: name for name, value in vars(schema.TensorType).items() if isinstance(value, int)}
    dtype = np.dtype(names[tensor.type].lower())
    return np.frombuffer(bytes(model.buffers[tensor.buffer].data), dtype).reshape(tensor.shape).copy()


def set_constant(model: Any, operator: Any, place: int, array: np.ndarray[Any, Any]) -> None:
    """Give them other values; of the same shape and type."""
    tensor = model.subgraphs[0].tensors[operator.inputs[place]]
    model.buffers[tensor.buffer].data = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)

"""TFLite files as objects of the format's schema, to change by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["open_tflite", "operators", "weight_scaled", "write_tflite"]


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


def weight_scaled(place: int, factor: float) -> Callable[[Any], None]:
    """Give a convolution's quantized kernel other scales, all its channels alike.

    Args:
        place: Of the convolution, among all.
        factor: Times the scales that it has.
    """

    def change(model: Any) -> None:
        tensor = model.subgraphs[0].tensors[operators(model, "CONV_2D")[place].inputs[1]]
        tensor.quantization.scale = factor * tensor.quantization.scale

    return change

"""Load and save models of any size: weights in external files stay there until they're used."""

from __future__ import annotations

from pathlib import Path

import onnx_ir

__all__ = ["load", "save"]

_INSIDE = 1 << 30  # bytes of weights kept inside the file; protobuf itself ends at 2 GiB


def load(path: str | Path) -> onnx_ir.Model:
    """Read the graph; external weights are mapped, not read."""
    return onnx_ir.load(path)


def save(model: onnx_ir.Model, path: Path, *, inside: int = _INSIDE) -> None:
    """Write the model, its weights into `<name>.data` beside it when they're larger than `inside` bytes."""
    size = sum(value.const_value.nbytes for value in _initializers(model) if value.const_value is not None)
    onnx_ir.save(model, path, external_data=f"{path.name}.data" if size > inside else None)


def _initializers(model: onnx_ir.Model) -> list[onnx_ir.Value]:
    return [value for graph in model.graphs() for value in graph.initializers.values()]

"""Load and save models of any size: the weights of large ones stay in external files until they're used."""

from __future__ import annotations

from pathlib import Path

import onnx_ir

from conrepair.formats.onnx.passes.raise_opset import name_default_domain

_INSIDE = 1 << 30  # bytes of weights kept inside the file; protobuf itself ends at 2 GiB


def load(path: str | Path) -> onnx_ir.Model:
    """Read the graph; external weights of a large model are mapped, not read."""
    model = onnx_ir.load(path)
    name_default_domain(model)
    return model if is_large(model) else onnx_ir.external_data.load_to_model(model)


def save(model: onnx_ir.Model, path: Path) -> None:
    """Write the model; the weights of a large one go into `<name>.data` beside it."""
    onnx_ir.save(model, path, external_data=f"{path.name}.data" if is_large(model) else None)


def is_large(model: onnx_ir.Model, *, without_external: bool = False) -> bool:
    """Whether the weights are too many to keep them in the file.

    Args:
        model: Which.
        without_external: Leave out those that are in external files already.
    """
    tensors = [value.const_value for graph in model.graphs() for value in graph.initializers.values()]
    numbers = (tensor for tensor in tensors if tensor is not None and tensor.dtype != onnx_ir.DataType.STRING)
    left_out = onnx_ir.ExternalTensor if without_external else ()
    return sum(tensor.nbytes for tensor in numbers if not isinstance(tensor, left_out)) > _INSIDE

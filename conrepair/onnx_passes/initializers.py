"""Add constants to a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir

__all__ = ["new_initializer"]


def new_initializer(graph: onnx_ir.Graph, name: str, array: npt.NDArray[Any]) -> onnx_ir.Value:
    """Register an array as an initializer of a name that isn't taken."""
    tensor = onnx_ir.tensor(np.asarray(array), name=name)
    value = onnx_ir.Value(
        name=name,
        type=onnx_ir.TensorType(tensor.dtype),
        shape=onnx_ir.Shape(np.shape(array)),
        const_value=tensor,
    )
    graph.register_initializer(value)
    return value

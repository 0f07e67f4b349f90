"""Constants of a graph: read, and added."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir

from conrepair.ground.onnx_graphs.remove_unused import remove_identities

# Give each Gemm a weight of its own.

_WEIGHT = 1


def give_own_weights(model: onnx_ir.Model) -> None:
    """Copy initializers in place that a Gemm shares with other nodes, also through Identity.

    Exporters write equal weights once. ONNX Runtime's quantizer transposes a Gemm's weight under its old name, so
    that whoever else reads it gets it transposed.
    """
    remove_identities(model)
    for node in model.graph:
        weight = node.inputs[_WEIGHT] if node.op_type == "Gemm" else None
        if weight is None or not weight.is_initializer() or weight.const_value is None or len(weight.uses()) < 2:
            continue
        copy = onnx_ir.Value(
            name=f"{weight.name}/{node.name or node.outputs[0].name}", const_value=weight.const_value
        )
        copy.type, copy.shape = weight.type, weight.shape
        model.graph.register_initializer(copy)
        node.replace_input_with(_WEIGHT, copy)


def constant_of(value: onnx_ir.Value | None) -> npt.NDArray[Any] | None:
    """The numbers of a constant; None for what isn't one, or is computed."""
    tensor = None if value is None else onnx_ir.convenience.get_const_tensor(value)
    return None if tensor is None else tensor.numpy()


def new_initializer(graph: onnx_ir.Graph, name: str, array: npt.NDArray[Any]) -> onnx_ir.Value:
    """Register an array as an initializer of a name that isn't taken."""
    tensor = onnx_ir.tensor(np.asarray(array), name=name)
    value = onnx_ir.Value(
        name=name, type=onnx_ir.TensorType(tensor.dtype), shape=onnx_ir.Shape(np.shape(array)), const_value=tensor
    )
    graph.register_initializer(value)
    return value

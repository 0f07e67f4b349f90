"""Numbers of the vocabulary's parameters as Keras's layers store them."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from conrepair.editors.operation import NotEditableError
from conrepair.graph.layer_graph import Array, Node
from conrepair.networks.keras_recurrent import GATES
from conrepair.networks.parts import depthwise_kernel, in_out_kernel

__all__ = ["assign"]

_VARIABLES = {"W": "kernel", "R": "recurrent_kernel", "B": "bias"}


def assign(layer: Any, node: Node, role: str, array: Array) -> None:
    """Give a layer's variable, or those of all directions, other numbers.

    Args:
        layer: Of the model.
        node: What the layer is in the vocabulary.
        role: Of the parameter.
        array: In the vocabulary's convention.

    Raises:
        NotEditableError: if the parameter isn't stored in a variable, or is of another shape.
    """
    parameter = node.parameters.get(role)
    if parameter is None:
        raise NotEditableError(f"{node.name} has no {role}")
    if array.shape != parameter.shape:
        raise NotEditableError(f"{node.name}: {role} can't be of shape {array.shape}")
    if node.op in GATES and role in _VARIABLES:
        for cell, part in zip(_cells(layer), array, strict=True):
            variable = getattr(cell, _VARIABLES[role])
            variable.assign(_of_gates(part, role, GATES[node.op], len(variable.shape)))
        return
    variable = next((item for item in getattr(layer, "weights", ()) if item.path == parameter.name), None)
    if variable is None:
        raise NotEditableError(f"{node.name}: {role} isn't stored in a variable of its own")
    shape = tuple(variable.shape)
    if not np.array_equal(_native(node, role, parameter.numpy(), shape), variable.numpy(), equal_nan=True):
        raise NotEditableError(f"{node.name}: {role} is computed from {variable.path}")
    variable.assign(_native(node, role, array, shape))


def _cells(layer: Any) -> list[Any]:
    if isinstance(layer, keras.layers.Bidirectional):
        return [layer.forward_layer.cell, layer.backward_layer.cell]
    return [layer.cell]


def _of_gates(array: Array, role: str, order: tuple[int, ...], rank: int) -> Array:
    """[gates * hidden, ...] as [..., gates * hidden] in Keras's order; a bias has two halves, or is their sum."""
    back = np.argsort(order)

    def turned(part: Array) -> Array:
        pieces = np.split(part, len(order))
        return np.concatenate([pieces[place] for place in back]).T

    if role != "B":
        return turned(array)
    first, second = (turned(half) for half in np.split(array, 2))
    return np.stack([first, second]) if rank > 1 else first + second


def _native(node: Node, role: str, array: Array, shape: tuple[int, ...]) -> Array:
    """One variable's numbers, from the convention of its role."""
    if role == "weight" and node.op in {"Conv", "ConvTranspose"}:
        depthwise = node.native.startswith("Depthwise")
        return depthwise_kernel(array, shape[-2]) if depthwise else in_out_kernel(array)
    if node.op == "Attention":  # heads and their channels as one axis
        return array.reshape(shape)
    return array

"""Keras layers and functions from steps in the neutral vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras

from conrepair.editors.editor import NotEditableError, Step
from conrepair.editors.keras_operators import FUNCTIONS
from conrepair.graph.layer_graph import Array, Attribute

__all__ = ["activation_layer", "apply_steps", "function_name"]

_HALF = 10  # ONNX's number for float16
_NAMES = {op: name for name, op in FUNCTIONS.items()}


def function_name(operator: str) -> str:
    """What Keras calls an activation function.

    Raises:
        NotEditableError: if it has none.
    """
    name = _NAMES.get(operator)
    if name is None:
        raise NotEditableError(f"Keras has no activation {operator}")
    return name


def activation_layer(operator: str, attributes: Mapping[str, Attribute], name: str | None) -> Any:
    """An activation as a layer of its own.

    Raises:
        NotEditableError: if there is none.
    """
    layers = keras.layers
    if operator in {"LeakyRelu", "Elu"} and "alpha" in attributes:
        alpha = float(str(attributes["alpha"]))
        return layers.ELU(alpha, name=name) if operator == "Elu" else layers.LeakyReLU(alpha, name=name)
    if operator == "Softmax":
        return layers.Softmax(attributes.get("axis", -1), name=name)
    return layers.Activation(function_name(operator), name=name)


def apply_steps(tensor: Any, steps: Sequence[Step], name: str) -> tuple[Any, list[str]]:
    """A chain on a symbolic tensor.

    Args:
        tensor: What the chain reads.
        steps: The chain.
        name: Of the new layers; a number is added from the second one on.

    Returns:
        The result, and the names of the new layers.

    Raises:
        NotEditableError: if a step can't be expressed.
    """
    names: list[str] = []
    for operator, attributes, constants in steps:
        for call in _calls(operator, attributes, constants):
            names.append(f"{name}_{len(names)}" if names else name)
            tensor = call(tensor)
            # Functions of keras.ops are numbered through in the process, which isn't the same each time.
            tensor._keras_history.operation.name = names[-1]
    return tensor, names


def _calls(operator: str, attributes: Mapping[str, Any], constants: Sequence[Array]) -> list[Callable[[Any], Any]]:
    """What a step does, one layer after the other."""
    ops, layers = keras.ops, keras.layers
    numbers = [float(array.item()) for array in constants if array.size == 1]
    if operator == "Mul":
        return [layers.Rescaling(numbers[0])]
    if operator == "Sub":
        return [layers.Rescaling(1.0, offset=-numbers[0])]
    if operator == "Clip" and constants:
        return [lambda tensor: ops.clip(tensor, *numbers)]
    if operator == "Gather":
        order = [int(index) for index in constants[0]]
        return [lambda tensor: ops.take(tensor, order, axis=int(attributes["axis"]))]
    if operator == "Transpose":
        return [layers.Permute(tuple(attributes["perm"][1:]))]
    if operator == "Cast":
        dtype = "float16" if attributes["to"] == _HALF else "float32"
        return [lambda tensor: ops.cast(tensor, dtype)]
    if operator == "QuantizeLinear":
        return [layers.Rescaling(1 / numbers[0]), ops.round, lambda tensor: ops.clip(tensor, -128.0, 127.0)]
    if operator == "DequantizeLinear":
        return [layers.Rescaling(numbers[0])]
    if operator == "Gelu" and attributes.get("approximate") == "tanh":
        return [lambda tensor: ops.gelu(tensor, approximate=True)]
    return [activation_layer(operator, attributes, None)]

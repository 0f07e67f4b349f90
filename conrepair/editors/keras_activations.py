"""Activations as Keras calls them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras

from conrepair.editors.editor import NotEditableError
from conrepair.editors.keras_operators import FUNCTIONS
from conrepair.graph.layer_graph import Attribute

__all__ = ["activation_layer", "function_name"]

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

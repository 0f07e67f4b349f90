"""Activations as Keras calls them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import keras

from conrepair.editors.editor import NotEditableError
from conrepair.graph.attributes import as_real
from conrepair.graph.layer_graph import Attribute
from conrepair.graph.operators import SOFTMAX
from conrepair.networks.keras_activations import FUNCTIONS

__all__ = ["activation_layer", "function_name"]


def function_name(operator: str, attributes: Mapping[str, Attribute], rank: int | None = None) -> str | None:
    """What Keras calls an activation function; None where it has none with such attributes.

    Args:
        operator: In the vocabulary.
        attributes: Those that are left out are as the function has them.
        rank: Of the tensor that it's given, for functions along an axis.
    """
    if operator in SOFTMAX:
        last = None if rank is None else rank - 1
        along_last = attributes.get("axis", -1) in {-1, None, last}
        return ("softmax" if operator == "Softmax" else "log_softmax") if along_last else None
    for function, (op, values) in FUNCTIONS.items():
        if op == operator and all(_alike(attributes.get(name), value) for name, value in values.items()):
            return str(function.__name__)
    return None


def _alike(said: Attribute, value: Attribute) -> bool:
    if isinstance(said, int | float) and isinstance(value, int | float):
        return math.isclose(said, value, rel_tol=1e-6)
    return said is None or said == value


def activation_layer(operator: str, attributes: Mapping[str, Attribute], name: str | None) -> Any:
    """An activation as a layer of its own.

    Raises:
        NotEditableError: if there is none.
    """
    layers = keras.layers
    if operator in {"LeakyRelu", "Elu"} and "alpha" in attributes:
        alpha = as_real(attributes["alpha"])
        return layers.ELU(alpha, name=name) if operator == "Elu" else layers.LeakyReLU(alpha, name=name)
    if operator == "Softmax":
        return layers.Softmax(attributes.get("axis", -1), name=name)
    function = function_name(operator, attributes)
    if function is None:
        raise NotEditableError(f"Keras has no activation {operator} of {dict(attributes)}")
    return layers.Activation(function, name=name)

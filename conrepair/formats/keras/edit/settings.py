"""Activations and windows, as layers of Keras are told them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import keras

from conrepair.formats.editing.editor import NotEditableError
from conrepair.formats.keras.read.activations import FUNCTIONS
from conrepair.formats.networks.parts import window
from conrepair.ground.graph.attributes import as_real
from conrepair.ground.graph.layer_graph import Attribute, Node
from conrepair.ground.graph.operators import SOFTMAX


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


# Windows, which have words for their pads and no numbers.


_ENTRIES = {"strides": "strides", "dilations": "dilation_rate"}


def window_config(
    node: Node, layer: Any, shape: Sequence[int] | None, changes: Mapping[str, Attribute]
) -> dict[str, Any]:
    """The entries of a configuration that say other strides, dilations or pads.

    Args:
        node: What the layer is in the vocabulary.
        layer: The layer.
        shape: Of what it reads.
        changes: Those of the attributes that change; the others stay.

    Raises:
        NotEditableError: if no word says the pads, or the layer has no such entry.
    """
    found = {_ENTRIES[name]: value for name, value in changes.items() if name in _ENTRIES}
    wanted = {**node.attributes, **changes}
    if isinstance(wanted["pads"], tuple):
        found["padding"] = _padding(node, layer, shape, wanted)
    missing = found.keys() - layer.get_config().keys()
    if missing:
        raise NotEditableError(f"{node.native} has no {', '.join(sorted(missing))}")
    return found


def _padding(node: Node, layer: Any, shape: Sequence[int] | None, wanted: Mapping[str, Any]) -> str:
    kernel, strides, dilations = (wanted[name] for name in ("kernel_shape", "strides", "dilations"))
    sizes = None if shape is None else tuple(shape[1:-1] if node.channels_last else shape[2:])
    known = ("causal", "same", "valid") if type(layer).__name__ == "Conv1D" else ("same", "valid")
    words = {window(kernel, strides, dilations, word, sizes)["pads"]: word for word in known}  # the last one counts
    word = layer.padding if _said(node, wanted) else words.get(wanted["pads"])
    if word is None:
        raise NotEditableError(f"{node.native} has no word for pads of {list(wanted['pads'])}")
    return str(word)


def _said(node: Node, wanted: Mapping[str, Any]) -> bool:
    """Whether nothing of the pads, or of what they follow from, changes."""
    return all(node.attributes[name] == wanted[name] for name in ("pads", "strides", "dilations"))

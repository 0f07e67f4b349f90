"""Activation functions of Keras: as arguments of layers and as layers of their own."""

from __future__ import annotations

from typing import Any

from keras import activations, layers

from conrepair.graph.layer_graph import Attribute
from conrepair.graph.operators import OPERATORS
from conrepair.networks.keras_parts import KerasCall, Rule, weight
from conrepair.networks.parts import LayerPart

__all__ = ["FUNCTIONS", "RULES", "activation_parts", "recurrent_name"]

_RELU6: dict[str, Attribute] = {"min": 0.0, "max": 6.0}
_HARD_SIGMOID: dict[str, Attribute] = {"alpha": 1 / 6, "beta": 0.5}
FUNCTIONS: dict[Any, tuple[str, dict[str, Attribute]]] = {
    activations.relu: ("Relu", {}),
    activations.relu6: ("Clip", _RELU6),
    activations.sigmoid: ("Sigmoid", {}),
    activations.tanh: ("Tanh", {}),
    activations.elu: ("Elu", {"alpha": 1.0}),
    activations.celu: ("Celu", {"alpha": 1.0}),
    activations.selu: ("Selu", dict(OPERATORS["Selu"].attributes)),
    activations.gelu: ("Gelu", {"approximate": "none"}),
    activations.silu: ("Swish", {"alpha": 1.0}),
    activations.softplus: ("Softplus", {}),
    activations.softsign: ("Softsign", {}),
    activations.mish: ("Mish", {}),
    activations.exponential: ("Exp", {}),
    activations.leaky_relu: ("LeakyRelu", {"alpha": 0.2}),
    activations.hard_sigmoid: ("HardSigmoid", _HARD_SIGMOID),
    activations.hard_silu: ("HardSwish", {}),
    activations.hard_shrink: ("Shrink", {"lambd": 0.5, "bias": 0.0}),
    activations.soft_shrink: ("Shrink", {"lambd": 0.5, "bias": 0.5}),
}
"""Operator and attributes; softmax follows the rank."""


def activation_parts(function: Any, rank: int | None, *, channels_last: bool = False) -> list[LayerPart]:
    """The activation that's an argument of a layer; nothing when it does nothing.

    Args:
        function: As the layer holds it.
        rank: Of the tensor that it's given.
        channels_last: As for the operator in front.
    """
    if function is None or function is activations.linear:
        return []
    native = getattr(function, "__name__", type(function).__name__)
    if function in (activations.softmax, activations.log_softmax) and rank is not None:
        op = "Softmax" if function is activations.softmax else "LogSoftmax"
        return [LayerPart(op, {"axis": rank - 1}, channels_last=channels_last, native=native)]
    if isinstance(function, layers.Layer) and type(function) in RULES:
        return [
            LayerPart(part.op, part.attributes, part.parameters, channels_last, native)
            for part in RULES[type(function)](KerasCall(function, ((0,) * (rank or 1),), ()))
        ]
    op, attributes = FUNCTIONS.get(function, (native, {}))
    return [LayerPart(op, attributes, channels_last=channels_last, native=native)]


def recurrent_name(function: Any) -> str:
    """What a recurrent layer's activation is called in the vocabulary."""
    if function is None or function is activations.linear:
        return "Identity"
    if function in FUNCTIONS:
        return FUNCTIONS[function][0]
    return str(getattr(function, "__name__", type(function).__name__))


def _activation(call: KerasCall) -> list[LayerPart]:
    return activation_parts(call.operation.activation, call.rank) or [LayerPart("Identity")]


def _relu(call: KerasCall) -> list[LayerPart]:
    layer = call.operation
    highest, slope, threshold = layer.max_value, float(layer.negative_slope), float(layer.threshold)
    if not slope and not threshold:
        if highest is None:
            return [LayerPart("Relu")]
        return [LayerPart("Clip", {"min": 0.0, "max": float(highest)})]
    if highest is None and not threshold:
        return [LayerPart("LeakyRelu", {"alpha": slope})]
    if highest is None and not slope:
        return [LayerPart("ThresholdedRelu", {"alpha": threshold})]
    return [LayerPart("ReLU", {"max_value": highest, "negative_slope": slope, "threshold": threshold})]


def _softmax(call: KerasCall) -> list[LayerPart]:
    axis = call.operation.axis
    axes = [axis] if isinstance(axis, int) else list(axis)
    if len(axes) > 1 or call.masked:
        raise ValueError("over several axes, or with a mask")
    return [LayerPart("Softmax", {"axis": call.axis(axes[0])})]


RULES: dict[type, Rule] = {
    layers.Activation: _activation,
    layers.ReLU: _relu,
    layers.Softmax: _softmax,
    layers.LeakyReLU: lambda call: [LayerPart("LeakyRelu", {"alpha": float(call.operation.negative_slope)})],
    layers.ELU: lambda call: [LayerPart("Elu", {"alpha": float(call.operation.alpha)})],
    layers.PReLU: lambda call: [LayerPart("PRelu", {}, {"slope": weight(call.operation.alpha)})],
}

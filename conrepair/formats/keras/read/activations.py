"""Activation functions of Keras: as arguments of layers and as layers of their own."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from keras import activations, layers

from conrepair.formats.keras.read import ops as keras_ops
from conrepair.formats.keras.read.ops import KINDS
from conrepair.formats.keras.read.parts import KerasCall, weight
from conrepair.formats.networks.parts import LayerPart, Rules
from conrepair.ground.graph.layer_graph import Attribute

_CALLED = {"exponential": "Exp"}
"""Functions that keras.ops calls otherwise."""

RULES = Rules({layers.LeakyReLU: keras_ops.RULES[KINDS["LeakyRelu"]], layers.ELU: keras_ops.RULES[KINDS["Elu"]]})
_NOTHING = (None, activations.linear)


def _operations() -> Iterator[tuple[Any, Any]]:
    """Activation functions, each with the operation that computes it, set as the function is by default."""
    for name, function in vars(activations).items():
        kind = KINDS.get(_CALLED.get(name, name.title().replace("_", "")))
        if inspect.isfunction(function) and kind is not None:
            taken, said = inspect.signature(kind).parameters, inspect.signature(function).parameters
            yield function, kind(**{name: said[name].default for name in taken.keys() & said.keys()})


_OPERATIONS = dict(_operations())


def _parts(operation: Any, rank: int | None) -> list[LayerPart]:
    """What an operation or a layer is for one tensor."""
    rule = RULES.get(type(operation)) or keras_ops.RULES.get(type(operation))
    return [] if rule is None else rule(KerasCall(operation, (None if rank is None else (0,) * rank,), ()))


def activation_parts(function: Any, rank: int | None, *, channels_last: bool = False) -> list[LayerPart]:
    """The activation that's an argument of a layer; nothing when it does nothing.

    Args:
        function: As the layer holds it.
        rank: Of the tensor that it's given.
        channels_last: As for the operator in front.
    """
    if function in _NOTHING:
        return []
    native = getattr(function, "__name__", type(function).__name__)
    operation = function if isinstance(function, layers.Layer) else _OPERATIONS.get(function)
    parts = _parts(operation, rank) or [LayerPart(native)]
    return [replace(part, channels_last=channels_last, native=native) for part in parts]


def recurrent_name(function: Any) -> str:
    """What a recurrent layer's activation is called in the vocabulary."""
    if function in _NOTHING:
        return "Identity"
    if function in FUNCTIONS:
        return FUNCTIONS[function][0]
    return str(getattr(function, "__name__", type(function).__name__))


@RULES.of("Identity", layers.Activation)
def _activation(op: str, call: KerasCall) -> list[LayerPart]:
    return activation_parts(call.operation.activation, call.rank) or [LayerPart(op)]


@RULES.of("Relu", layers.ReLU)
def _relu(op: str, call: KerasCall) -> list[LayerPart]:
    layer = call.operation
    highest, slope, threshold = layer.max_value, float(layer.negative_slope), float(layer.threshold)
    if not slope and not threshold:
        if highest is None:
            return [LayerPart(op)]
        return [LayerPart("Clip", {"min": 0.0, "max": float(highest)})]
    if highest is None and not threshold:
        return [LayerPart("LeakyRelu", {"alpha": slope})]
    if highest is None and not slope:
        return [LayerPart("ThresholdedRelu", {"alpha": threshold})]
    return [LayerPart("ReLU", {"max_value": highest, "negative_slope": slope, "threshold": threshold})]


@RULES.of("Softmax", layers.Softmax)
def _softmax(op: str, call: KerasCall) -> list[LayerPart]:
    axis = call.operation.axis
    axes = [axis] if isinstance(axis, int) else list(axis)
    if len(axes) > 1 or call.masked:
        raise ValueError("over several axes, or with a mask")
    return [LayerPart(op, {"axis": call.axis(axes[0])})]


@RULES.of("PRelu", layers.PReLU)
def _prelu(op: str, call: KerasCall) -> list[LayerPart]:
    return [LayerPart(op, {}, {"slope": weight(call.operation.alpha)})]


_ALONG_AXES = {activations.softmax, activations.log_softmax}
FUNCTIONS: dict[Any, tuple[str, Mapping[str, Attribute]]] = {
    function: (part.op, part.attributes)
    for function, operation in _OPERATIONS.items()
    if function not in _ALONG_AXES
    for part in _parts(operation, None)
}
"""Operator and attributes; softmax follows the rank."""

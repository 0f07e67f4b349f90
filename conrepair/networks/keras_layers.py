"""The operators that each call of a Keras model stands for."""

from __future__ import annotations

import dataclasses

from conrepair.graph.operators import OPERATORS
from conrepair.networks import (
    keras_activations,
    keras_convolution,
    keras_normalization,
    keras_ops,
    keras_recurrent,
    keras_shape,
)
from conrepair.networks.keras_parts import KerasCall, Rule, native_part
from conrepair.networks.parts import LayerPart

__all__ = ["parts_of"]

_RULES: dict[type, Rule] = {
    rule: function
    for module in (
        keras_activations,
        keras_convolution,
        keras_normalization,
        keras_ops,
        keras_recurrent,
        keras_shape,
    )
    for rule, function in module.RULES.items()
}
_MASKED = {"LSTM", "GRU", "RNN", "Attention"}  # that have a tensor for what's masked


def parts_of(call: KerasCall) -> list[LayerPart]:
    """Take a call apart.

    Returns:
        At least one part; the last one gives the call's results.
    """
    native = type(call.operation).__name__
    rule = _RULES.get(type(call.operation))
    parts: list[LayerPart] = []
    if rule is not None:
        # A call whose sizes or settings the vocabulary can't say stays as it is.
        try:
            parts = rule(call)
        except (KeyError, TypeError, ValueError):
            parts = []
        if call.masked and not all(part.op in _MASKED or part.op == "Identity" for part in parts):
            parts = []
    if not parts:
        # Keras has layers called like operators that they are not.
        parts = [native_part(call, f"Keras{native}" if native in OPERATORS else native)]
    return [part if part.native else dataclasses.replace(part, native=native) for part in parts]

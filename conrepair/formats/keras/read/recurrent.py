"""Recurrent layers, attention and embeddings of Keras."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from keras import layers

from conrepair.formats.keras.read.activations import recurrent_name
from conrepair.formats.keras.read.parts import KerasCall, weight
from conrepair.formats.networks.parts import LayerPart, Rules
from conrepair.ground.graph.layer_graph import Array, Attribute, Parameter
from conrepair.ground.graph.operators import OPERATORS, RECURRENT_ACTIVATIONS

RULES = Rules()
# Where ONNX's gates are in Keras's order: Keras has LSTM's as input, forget, cell, output.
_GATES = {"LSTM": (0, 3, 1, 2), "GRU": (0, 1, 2), "RNN": (0,)}
_OPERATORS = dict(zip((layers.LSTM, layers.GRU, layers.SimpleRNN), _GATES, strict=True))


def _stacked(op: str, variables: Sequence[Any], *, bias: bool = False) -> Parameter:
    """One parameter of all directions; a layer that has the sum of two biases has zeros in place of the second."""

    def gates(numbers: Array) -> Array:
        """[..., gates * hidden] as [gates * hidden, ...] in ONNX's order, biases one behind the other."""
        if bias and numbers.ndim == 1:
            numbers = np.stack([numbers, np.zeros_like(numbers)])
        pieces = np.split(numbers, len(_GATES[op]), -1)
        ordered = np.concatenate([pieces[index] for index in _GATES[op]], -1)
        return ordered.ravel() if bias else ordered.T

    return weight(*variables, arrange=lambda *directions: np.stack([*map(gates, directions)]))


def _recurrent_part(cells: Sequence[Any], op: str, direction: str, *, sequences: bool) -> LayerPart:
    first = cells[0]
    parameters = {
        "W": _stacked(op, [cell.kernel for cell in cells]),
        "R": _stacked(op, [cell.recurrent_kernel for cell in cells]),
    }
    if first.use_bias:
        parameters["B"] = _stacked(op, [cell.bias for cell in cells], bias=True)
    own = [getattr(first, "recurrent_activation", first.activation), first.activation, first.activation]
    attributes: dict[str, Attribute] = {
        "hidden_size": int(first.units),
        "direction": direction,
        "activations": tuple(map(recurrent_name, own[: len(RECURRENT_ACTIVATIONS[op])])),
        "batch_first": True,
        "return_sequences": sequences,
    }
    if hasattr(first, "reset_after"):
        attributes["linear_before_reset"] = bool(first.reset_after)
    return LayerPart(op, {**OPERATORS[op].attributes, **attributes}, parameters)


def _recurrent(op: str, call: KerasCall) -> list[LayerPart]:
    layer = call.operation
    if layer.stateful or (layer.go_backwards and layer.return_sequences):
        raise ValueError("keeps its state, or gives its sequence from the last step to the first")
    direction = "reverse" if layer.go_backwards else "forward"
    return [_recurrent_part([layer.cell], op, direction, sequences=bool(layer.return_sequences))]


RULES.named(_OPERATORS, _recurrent)


def _bidirectional(call: KerasCall) -> list[LayerPart]:
    layer = call.operation
    pair = (layer.forward_layer, layer.backward_layer)
    op = _OPERATORS.get(type(pair[0]))
    alike = type(pair[0]) is type(pair[1]) and pair[1].go_backwards and not pair[0].go_backwards
    if op is None or not alike or layer.merge_mode != "concat" or pair[0].stateful:
        raise ValueError("of other layers, or merged in another way")
    return [
        _recurrent_part([each.cell for each in pair], op, "bidirectional", sequences=bool(pair[0].return_sequences))
    ]


RULES[layers.Bidirectional] = _bidirectional


@RULES.of("Gather", layers.Embedding)
def _embedding(op: str, call: KerasCall) -> list[LayerPart]:
    layer = call.operation
    if getattr(layer, "quantization_mode", None):
        raise ValueError("quantized by Keras")
    return [LayerPart(op, {"axis": 0}, {"table": weight(layer.embeddings)})]


def _heads_in(kernel: Array) -> Array:
    """[in, heads, size] as [in, heads * size]."""
    return kernel.reshape(kernel.shape[0], -1)


def _heads_out(kernel: Array) -> Array:
    """[heads, size, out] as [heads * size, out]."""
    return kernel.reshape(-1, kernel.shape[-1])


@RULES.of("Attention", layers.MultiHeadAttention)
def _multi_head(op: str, call: KerasCall) -> list[LayerPart]:
    """The operator's tensors are query, key, value, and then the mask if there is one."""
    layer = call.operation
    usual = not layer.get_config().get("use_gate") and layer._sliding_window is None and len(call.outputs) == 1
    if not usual or call.rank != 3 or getattr(layer, "quantization_mode", None):
        raise ValueError("of another kind than the usual one")
    value = call.argument(1, "value")
    key = call.argument(2, "key")
    used = [call.argument(0, "query"), value if key is None else key, value]
    reads = [call.position(symbol) for symbol in used]
    known = {id(symbol) for symbol in used}
    reads += [index for index, symbol in enumerate(call.tensors) if id(symbol) not in known]
    parameters: dict[str, Parameter] = {}
    dense = (layer._query_dense, layer._key_dense, layer._value_dense)
    for role, projection in zip(("query", "key", "value"), dense, strict=True):
        parameters[role] = weight(projection.kernel, arrange=_heads_in)
        if projection.bias is not None:
            parameters[f"{role}_bias"] = weight(projection.bias, arrange=np.ravel)
    parameters["output"] = weight(layer._output_dense.kernel, arrange=_heads_out)
    if layer._output_dense.bias is not None:
        parameters["output_bias"] = weight(layer._output_dense.bias)
    attributes: dict[str, Attribute] = {
        "num_heads": int(layer.num_heads),
        "scale": float(layer.key_dim) ** -0.5,
        "is_causal": bool(call.kwargs.get("use_causal_mask", False)),
    }
    return [LayerPart(op, attributes, parameters, True, reads=tuple(reads))]

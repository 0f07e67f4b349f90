"""LSTM, GRU and RNN: PyTorch's, of several layers at once, as one node for each layer in ONNX's order of gates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import Node

from conrepair.formats.networks.parts import Rules
from conrepair.formats.torch.load.framework import dtype_name
from conrepair.formats.torch.read.call import TorchCall, TorchPart, sizes
from conrepair.ground.graph.layer_graph import Attribute, Parameter, Tensor
from conrepair.ground.graph.operators import OPERATORS

# Where each of ONNX's gates stands in PyTorch's: iofc in ifgo, zrh in rzn.
_GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}
_STATES = ("initial_h", "initial_c")


def _recurrent(op: str, call: TorchCall) -> Sequence[TorchPart] | None:
    """Results are laid out as PyTorch's: both directions side by side in the last axis."""
    weights, layers = call["params"], call["num_layers"]
    states = call["hx"] if isinstance(call["hx"], list | tuple) else [call["hx"]]
    if weights is None or not isinstance(layers, int) or not all(map(call.is_constant, weights)):
        return None
    directions = 2 if call["bidirectional"] else 1
    per_direction = 4 if call["has_biases"] else 2
    several = layers > 1
    if len(weights) != layers * directions * per_direction:  # projections
        return None
    if (call["train"] and call["dropout"]) or (several and any(map(call.depends, states))):
        return None
    parts = []
    given: Node | str = call["input"]
    for layer in range(layers):
        group = weights[layer * directions * per_direction : (layer + 1) * directions * per_direction]
        parts.append(_layer(op, call, given, group, states, layer))
        given = _sequence_name(call, layer)
    return [*parts, *(_joined_state(call, layers, index) for index in range(len(states)) if several)]


def _layer(
    op: str, call: TorchCall, given: Node | str, weights: Sequence[Node], states: Sequence[Any], layer: int
) -> TorchPart:
    layers = call["num_layers"]
    directions = 2 if call["bidirectional"] else 1
    several, last = layers > 1, layer == layers - 1
    hidden = int(call.value(weights[1]).shape[1])
    attributes: dict[str, Attribute] = {
        "hidden_size": hidden,
        "direction": "bidirectional" if directions == 2 else "forward",
        "batch_first": bool(call["batch_first"]),
    }
    if "linear_before_reset" in OPERATORS[op].attributes:
        attributes["linear_before_reset"] = True
    if call.name == "rnn_relu":
        attributes["activations"] = ("Relu",) * directions
    parameters = _weights(call, op, weights)
    inputs: list[Node | str | None] = [given]
    for role, state in zip(_STATES, states, strict=False):
        if call.depends(state):
            inputs.append(state)
        elif not _is_zeros(state):
            parameters[role] = call.parameter(state, transform=_rows(layer * directions, directions))
    outputs: list[str | int] = list(range(len(states) + 1))
    inner: list[Tensor] = []
    if several:
        names = [_state_name(call, layer, index) for index in range(len(states))]
        outputs = [0 if last else _sequence_name(call, layer), *names]
        inner = [_inner(call, name, 1, (directions,)) for name in names]
        if not last:
            inner.append(_inner(call, _sequence_name(call, layer), 0, ()))
    return TorchPart(op, attributes, inputs, parameters, outputs, inner, f"/{layer}" if several else "")


def _weights(call: TorchCall, op: str, weights: Sequence[Node]) -> dict[str, Parameter]:
    directions = 2 if call["bidirectional"] else 1
    each = len(weights) // directions
    order = _GATES[op]

    def stacked(*tensors: torch.Tensor) -> torch.Tensor:
        chunks = [tensor.chunk(len(order)) for tensor in tensors]
        return torch.stack([torch.cat([gates[position] for position in order]) for gates in chunks])

    roles = {"W": weights[0::each], "R": weights[1::each]}
    parameters = {role: call.parameter(*nodes, transform=stacked) for role, nodes in roles.items()}
    if each == 4:
        biases = [node for index in range(directions) for node in weights[index * 4 + 2 : index * 4 + 4]]
        parameters["B"] = call.parameter(
            *biases, transform=lambda *tensors: stacked(*tensors).reshape(directions, -1)
        )
    return parameters


def _rows(start: int, count: int) -> Any:
    return lambda tensor: tensor[start : start + count]


def _joined_state(call: TorchCall, layers: int, index: int) -> TorchPart:
    names = [_state_name(call, layer, index) for layer in range(layers)]
    return TorchPart("Concat", {"axis": 0}, names, outputs=(index + 1,), suffix=f"/{_STATES[index][-1]}")


def _sequence_name(call: TorchCall, layer: int) -> str:
    return f"{call.node.name}/{layer}"


def _state_name(call: TorchCall, layer: int, index: int) -> str:
    return f"{call.node.name}/{layer}/{_STATES[index][-1]}"


def _inner(call: TorchCall, name: str, position: int, first: tuple[int, ...]) -> Tensor:
    value = call.value()[position]
    shape = sizes(value.shape)
    if shape is not None and first:
        shape = first + shape[1:]
    return Tensor(name, shape, dtype_name(value.dtype), observable=False)


def _is_zeros(state: Any) -> bool:
    """Whether it says what ONNX means by none."""
    return isinstance(state, Node) and (
        state.target is torch.ops.aten.zeros.default
        or (state.target is torch.ops.aten.full.default and state.args[1] == 0)
    )


RULES = Rules()
RULES.named({"lstm": "LSTM", "gru": "GRU", "rnn_tanh": "RNN", "rnn_relu": "RNN"}, _recurrent)

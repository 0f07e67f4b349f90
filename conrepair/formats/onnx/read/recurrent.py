"""ONNX's LSTM, GRU and RNN in the vocabulary, and the LSTM whose weights are integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from conrepair.formats.onnx.read.call import OnnxCall
from conrepair.ground.graph.layer_graph import Array, Attribute, Parameter
from conrepair.ground.graph.operators import OPERATORS, RECURRENT_ACTIVATIONS

_WEIGHTS = {1: "W", 2: "R", 3: "B"}
_STATES = {5: "initial_h", 6: "initial_c"}
_PEEPHOLES = 7
_LENGTHS = 4
_INTEGERS = "DynamicQuantizeLSTM"
_GRIDS = {1: (8, 9), 2: (10, 11)}  # places of scale and zero point of an integer LSTM's weights
_OTHER = ("activation_alpha", "activation_beta", "clip", "input_forget")  # which the vocabulary doesn't have


def _recurrent(call: OnnxCall) -> None:
    operator = "LSTM" if call.operator == _INTEGERS else call.operator
    lengths = call.numbers(_LENGTHS)
    whole = lengths is None or _covers_all(call, lengths)
    if any(call.attribute(name) for name in _OTHER) or not whole:
        return
    grids = _GRIDS if call.operator == _INTEGERS else {}
    first = bool(call.attribute("layout", 0))
    sequences = bool(call.outputs[0])
    attributes: dict[str, Attribute] = {
        "hidden_size": _hidden_size(call),
        "direction": str(call.attribute("direction", "forward")),
        "activations": _activations(call, RECURRENT_ACTIVATIONS[operator]),
        "batch_first": first,
        "return_sequences": sequences,
    }
    if "linear_before_reset" in OPERATORS[operator].attributes:
        attributes["linear_before_reset"] = bool(call.attribute("linear_before_reset", 0))
    parameters = call.parameters({index: role for index, role in _WEIGHTS.items() if index not in grids})
    for index, (scale, zero) in grids.items():
        weight = call.dequantized_gates(index, scale, zero)
        if weight is None:
            return
        parameters[_WEIGHTS[index]] = weight
    if call.is_constant(_PEEPHOLES):
        parameters["P"] = call.parameter(_PEEPHOLES)
    states = {role: index for index, role in _STATES.items() if call.is_constant(index)}
    parameters |= {role: _state(call, index, first) for role, index in states.items()}
    names = [call.input(0), *call.varying((1, 2, 3)), *(call.input(index) for index in _STATES)]
    behind = call.varying((_LENGTHS, _PEEPHOLES))
    outputs = call.outputs if sequences else call.outputs[1:]
    call.emit([*names, *behind], attributes, parameters, outputs, operator=operator)


def _covers_all(call: OnnxCall, lengths: Array) -> bool:
    """Whether lengths given as a constant are those of the whole input."""
    sizes = call.sizes(0)
    steps = None if sizes is None else sizes[1 if call.attribute("layout", 0) else 0]
    return steps is not None and bool((lengths == steps).all())


def _hidden_size(call: OnnxCall) -> int | None:
    if call.has_attribute("hidden_size"):
        return int(call.attribute("hidden_size"))
    shape = call.shape(2)
    return None if shape is None else shape[-2 if call.operator == _INTEGERS else -1]


def _activations(call: OnnxCall, usual: tuple[str, ...]) -> tuple[str, ...] | None:
    """The activations of a recurrent layer; None for the default ones."""
    given = call.attribute("activations")
    if not given:
        return None
    times = len(given) // len(usual)
    return None if tuple(given) == usual * times else tuple(map(str, given))


def _state(call: OnnxCall, index: int, batch_first: bool) -> Parameter:
    """An initial state as [directions, batch, hidden]."""
    shape = call.shape(index) or ()
    if not batch_first:
        return call.parameter(index)
    return call.parameter(index, lambda array: array.swapaxes(0, 1), (shape[1], shape[0], *shape[2:]))


RULES: Mapping[str, Callable[[OnnxCall], None]] = dict.fromkeys(
    (*RECURRENT_ACTIVATIONS, f"com.microsoft.{_INTEGERS}"), _recurrent
)

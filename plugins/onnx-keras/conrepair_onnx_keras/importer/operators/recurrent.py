"""Recurrent networks: weights go into Keras's own layers, one for each direction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np
import onnx_ir
from keras import ops

from conrepair.ground.graph.operators import RECURRENT_ACTIVATIONS
from conrepair.ground.onnx_graphs.initializers import constant_of
from conrepair_onnx_keras.importer.indexing import add
from conrepair_onnx_keras.importer.node import ImportedNode, operator
from conrepair_onnx_keras.importer.values import Array, Size

_REFUSES = "peepholes, clip, input_forget, weights that aren't constant, activations that Keras's layer can't express"


@dataclass(frozen=True)
class _Kind:
    """How one of ONNX's operators corresponds to a Keras layer.

    Attributes:
        layer: Keras's class.
        gates: For each of Keras's gates, its place among ONNX's.
        functions: For each of Keras's gates, which of ONNX's activations it applies.
        states: Tensors that are carried from step to step.
    """

    layer: type[keras.layers.RNN]
    gates: tuple[int, ...]
    functions: tuple[int, ...]
    states: int


_KINDS = {
    "RNN": _Kind(keras.layers.SimpleRNN, (0,), (0,), 1),
    "GRU": _Kind(keras.layers.GRU, (0, 1, 2), (0, 0, 1), 1),
    "LSTM": _Kind(keras.layers.LSTM, (0, 2, 3, 1), (0, 0, 1, 0), 2),
}


@dataclass(frozen=True)
class _Activation:
    """An activation as `function(scale * x + shift)`; scale and shift go into a gate's weights."""

    function: Any
    scale: float = 1.0
    shift: float = 0.0
    key: tuple[Any, ...] = field(default=(), kw_only=True)


@operator(*_KINDS, constant=("W", "R", "B", "P"), ignores=("hidden_size", "output_sequence"), refuses=_REFUSES)
def recurrent(node: ImportedNode) -> Any:
    kind = _KINDS[node.operator]
    _refuse_variants(node)
    batch_first = bool(node.attribute("layout", 0))
    x = node.tensor(0, None if batch_first else (1, 0, 2))
    mask = _mask(node, x)
    direction = node.attribute("direction", "forward")
    backwards = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
    runs = [_run(node, kind, x, mask, index, backward) for index, backward in enumerate(backwards)]
    length, batch = node.shape(0)[1::-1] if batch_first else node.shape(0)[:2]
    return _outputs(node, runs, length, batch, batch_first)


def _refuse_variants(node: ImportedNode) -> None:
    if node.attribute("clip") is not None:
        node.refuse("Keras's layers can't clip what goes into an activation")
    if node.attribute("input_forget", 0):
        node.refuse("Keras's LSTM can't couple the input and forget gates")
    if np.any(node.constant(7, 0)):
        node.refuse("Keras's LSTM has no peepholes")


def _mask(node: ImportedNode, x: Any) -> Any:
    """Which steps of which sequence count, [batch, steps]; None when all do."""
    if not node.has(4):
        return None
    steps = node.shape(0)[1 if node.attribute("layout", 0) else 0]
    if node.is_constant(4) and steps in set(node.constant(4).tolist()) and len(set(node.constant(4).tolist())) == 1:
        return None
    places = ops.cumsum(ops.ones_like(x[:, :, 0], dtype="int32"), axis=1)
    return ops.less_equal(places, ops.expand_dims(ops.cast(node.tensor(4), "int32"), 1))


def _run(node: ImportedNode, kind: _Kind, x: Any, mask: Any, index: int, backward: bool) -> list[Any]:
    """One direction: the answers [batch, steps, hidden] in the order of the steps, and the final states."""
    functions = _activations(node, index)
    settings: dict[str, Any] = {"activation": functions[min(1, len(functions) - 1)].function}
    if len(functions) > 1:
        settings["recurrent_activation"] = functions[0].function
    if node.operator == "GRU":
        settings["reset_after"] = bool(node.attribute("linear_before_reset", 0))
    states = [_state(node, x, place, index) for place in range(5, 5 + kind.states)]
    given = None if all(state is None for state in states) else [_zeros(node, x) if s is None else s for s in states]
    call = [x, given, mask] if mask is not None else [x, given] if given is not None else [x]
    result = node.layer(
        kind.layer,
        *call,
        weights=_weights(node, kind, functions, index),
        units=node.constant(2).shape[2],
        return_sequences=True,
        return_state=True,
        go_backwards=backward,
        **({"zero_output_for_mask": True} if mask is not None else {}),
        **settings,
    )
    answers, *final = result
    return [ops.flip(answers, axis=1) if backward else answers, *final]


def _outputs(
    node: ImportedNode, runs: Sequence[list[Any]], length: Size, batch: Size, batch_first: bool
) -> list[Any]:
    directions = len(runs)
    answers = _joined([run[0] for run in runs], axis=2)
    hidden = answers.shape[-1]
    order, shape = (1, 2, 0, 3), (length, directions, batch, hidden)
    if batch_first:
        order, shape = (0, 1, 2, 3), (batch, length, directions, hidden)
    results = [node.output(answers, order, shape)]
    for place in range(1, node.outputs):
        state = _joined([run[place] for run in runs], axis=1)
        order_, sizes = (
            ((0, 1, 2), (batch, directions, hidden)) if batch_first else ((1, 0, 2), (directions, batch, hidden))
        )
        results.append(node.output(state, order_, sizes))
    return results


def _joined(tensors: Sequence[Any], axis: int) -> Any:
    return ops.expand_dims(tensors[0], axis) if len(tensors) == 1 else ops.stack(tensors, axis=axis)


# --- weights ----------------------------------------------------------------------------------------------


def _weights(node: ImportedNode, kind: _Kind, functions: Sequence[_Activation], index: int) -> list[Array]:
    """Kernel, recurrent kernel and bias as Keras's layer stores them."""
    hidden = node.constant(2).shape[2]
    gates = [functions[place] for place in kind.functions]
    scales = np.repeat([gate.scale for gate in gates], hidden)
    shifts = np.repeat([gate.shift for gate in gates], hidden)
    dtype = node.constant(1).dtype
    both = node.constant(3)
    biases = np.zeros((2, len(gates) * hidden), dtype) if both is None else both[index].reshape(2, -1)
    first, second = (_rearranged(bias, kind.gates) * scales for bias in biases)
    kernel = _rearranged(node.constant(1)[index], kind.gates).T * scales
    recurrent_kernel = _rearranged(node.constant(2)[index], kind.gates).T * scales
    apart = node.operator == "GRU" and node.attribute("linear_before_reset", 0)
    bias = np.stack([first + shifts, second]) if apart else first + second + shifts
    return [array.astype(dtype) for array in (kernel, recurrent_kernel, bias)]


def _rearranged(array: Array, gates: Sequence[int]) -> Array:
    parts = np.split(array, len(gates), axis=0)
    return np.concatenate([parts[gate] for gate in gates], axis=0)


# --- states -----------------------------------------------------------------------------------------------


def _state(node: ImportedNode, x: Any, place: int, index: int) -> Any:
    """The initial state of one direction, [batch, hidden]; None for zeros."""
    if not node.has(place) or _is_zero(node.ir.inputs[place]):
        return None
    if node.is_constant(place) and not np.any(node.constant(place)):
        return None
    state = node.tensor(place, None if node.attribute("layout", 0) else (1, 0, 2))[:, index]
    return add(_zeros(node, x), state) if node.is_constant(place) else state


def _zeros(node: ImportedNode, x: Any) -> Any:
    return ops.zeros_like(ops.repeat(x[:, 0, :1], node.constant(2).shape[2], axis=1))


def _is_zero(value: onnx_ir.Value | None) -> bool:
    """Whether a value is zeros, as many as the batch has rows: so exporters write a state that isn't given."""
    if value is None:
        return True
    constant = constant_of(value)
    if constant is not None:
        return not np.any(constant)
    producer = value.producer()
    if producer is None:
        return False
    if producer.op_type == "ConstantOfShape":
        filled = producer.attributes.get("value")
        return filled is None or not np.any(filled.value.numpy())
    return producer.op_type in _SHAPING and _is_zero(producer.inputs[0])


_SHAPING = {"Cast", "Expand", "Identity", "Reshape", "Slice", "Squeeze", "Tile", "Transpose", "Unsqueeze"}


# --- activations ------------------------------------------------------------------------------------------


def _activations(node: ImportedNode, index: int) -> list[_Activation]:
    """The activations of one direction; of LSTM the first two, as Keras uses its second one twice."""
    defaults = RECURRENT_ACTIVATIONS[node.operator]
    count = len(defaults)
    names = node.attribute("activations") or list(defaults) * (index + 1)
    alphas, betas = iter(node.attribute("activation_alpha", [])), iter(node.attribute("activation_beta", []))
    found = [_activation(node, str(name).lower(), alphas, betas) for name in names[: count * (index + 1)]]
    mine = found[count * index :]
    if node.operator == "LSTM":
        # The last one works on the cell's state, which no weight scales.
        if (mine[1].key, mine[2].scale, mine[2].shift) != (mine[2].key, 1.0, 0.0):
            node.refuse(f"Keras's LSTM has one activation for cell and output, here they differ: {names}")
        mine = mine[:2]
    return mine


_PLAIN = {"relu", "sigmoid", "softplus", "softsign", "tanh"}


def _activation(node: ImportedNode, name: str, alphas: Any, betas: Any) -> _Activation:
    """ONNX's activation; `alphas` and `betas` hold numbers for those only that take one."""
    if name in _PLAIN:
        return _Activation(name, key=(name,))
    if name == "leakyrelu":
        slope = next(alphas, 0.01)
        return _Activation(keras.layers.LeakyReLU(slope), key=(name, slope))
    if name == "elu":
        alpha = next(alphas, 1.0)
        return _Activation(keras.layers.ELU(alpha), key=(name, alpha))
    if name == "thresholdedrelu":
        threshold = next(alphas, 1.0)
        return _Activation(keras.layers.ReLU(threshold=threshold), key=(name, threshold))
    if name == "hardsigmoid":
        # Keras's own is clip(x / 6 + 0.5, 0, 1).
        alpha, beta = next(alphas, 0.2), next(betas, 0.5)
        return _Activation("hard_sigmoid", 6 * alpha, 6 * (beta - 0.5), key=(name,))
    if name == "affine":
        return _Activation("linear", next(alphas, 1.0), next(betas, 0.0), key=(name,))
    if name != "scaledtanh" or next(alphas, 1.0) != 1:
        node.refuse(f"Keras's layer can't apply the activation {name}")
    return _Activation("tanh", next(betas, 1.0), key=("tanh",))

"""TFLite's matrix product, recurrent layer and normalization."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from conrepair.formats.networks.parts import PREVIOUS, LayerPart
from conrepair.formats.networks.stored import StoredParameter, stored_parameter
from conrepair.formats.tensorflow.read.convolution import constant_bias
from conrepair.formats.tflite.read.operator import OperatorView
from conrepair.ground.graph.layer_graph import Array, Attribute
from conrepair.ground.graph.operators import RECURRENT_ACTIVATIONS

_SHUFFLED_WEIGHTS = 1
_L2_EPSILON = 1e-12
"""The kernel's bound of the norm is 1e-6; the vocabulary's is of the sum of squares."""

# The fused LSTM has its gates as input, forget, cell, output.
_PROJECTION_AND_NORMALIZATION = (16, 17, 20, 21, 22, 23)
GATES = {"W": (1, 4, 2, 3), "R": (5, 8, 6, 7), "B": (12, 15, 13, 14), "P": (9, 11, 10)}
"""The fused LSTM's operands that are one parameter in the vocabulary, which has input, output, forget, cell."""


def fully_connected(op: str, view: OperatorView) -> list[LayerPart]:
    """A product with a matrix, between rows where the operator makes and unmakes them."""
    if view.options.weightsFormat == _SHUFFLED_WEIGHTS or 0 not in view.varying:
        raise ValueError("weights in another order, or a constant input")
    data, result, weight, bias = view.sizes(0), view.result_sizes(), view.sizes(1), constant_bias(view, 2)
    parts = []
    if (len(result) == 2 and len(data) != 2) or data[-1] != weight[-1]:
        # Without `keepNumDims` the operator itself makes rows of what it's given.
        data = (int(np.prod(data)) // weight[-1], weight[-1])
        parts.append(LayerPart("Reshape", {"shape": data}, reads=(0,), shape=data))
    first = PREVIOUS if parts else 0
    attributes: dict[str, Attribute] = {"transpose_a": False, "transpose_b": not view.is_constant(1)}
    parameters, reads = view.optional(bias=bias), [first, 1]
    if view.is_constant(1):
        parameters, reads = {"weight": view.weight(), **parameters}, [first]
    product = (*data[:-1], weight[0])
    parts.append(LayerPart(op, attributes, parameters, reads=tuple(reads), shape=product))
    return parts if product == result else [*parts, LayerPart("Reshape", {"shape": result})]


def lstm(op: str, view: OperatorView) -> list[LayerPart]:
    """The fused layer, without projection and normalization."""
    options = view.options
    needed = (*GATES["W"], *GATES["R"], *GATES["B"])
    if (
        not all(view.is_constant(place) for place in needed)
        or any(view.has(place) for place in _PROJECTION_AND_NORMALIZATION)
        or options.fusedActivationFunction != 4
        or options.diagonalRecurrentTensors
    ):
        raise ValueError("of another kind than the usual one")
    gates = {role: [view.parameter(place) for place in GATES[role]] for role in ("W", "R", "B")}
    if all(view.is_constant(place) for place in GATES["P"]):
        gates["P"] = [view.parameter(place) for place in GATES["P"]]
    elif any(view.has(place) for place in GATES["P"]):
        raise ValueError("some peepholes")
    (hidden, _) = gates["W"][0].shape
    parameters = {role: _joined_gates(items, role) for role, items in gates.items()}
    attributes: dict[str, Attribute] = {
        "hidden_size": hidden,
        "direction": "forward",
        "activations": RECURRENT_ACTIVATIONS[op],
        "batch_first": not options.timeMajor,
        "return_sequences": True,
        "cell_clip": float(options.cellClip) or None,
    }
    return [LayerPart(op, attributes, parameters, reads=(0,))]


def _joined_gates(gates: Sequence[StoredParameter], role: str) -> StoredParameter:
    """The gates' arrays as one parameter, which has a scale for each row where each gate has one.

    Args:
        gates: In the vocabulary's order.
        role: Of the parameter; a bias has zeros behind, for a second one.
    """
    first = gates[0]

    def joined(*arrays: Array) -> Array:
        behind = [np.zeros_like(array) for array in arrays] if role == "B" else []
        return np.concatenate([*arrays, *behind])[None]

    scales = [scale for gate in gates for scale in [*gate.scales] * (gate.shape[0] // max(len(gate.scales), 1))]
    shapes, more = [gate.shape for gate in gates], {"bits": first.bits, "scales": tuple(scales)}
    return stored_parameter(first.name, first.dtype, lambda: [gate.numpy() for gate in gates], shapes, joined, **more)


def unit_norm(op: str, view: OperatorView) -> list[LayerPart]:
    """Divided by the norm along the last axis."""
    return [LayerPart(op, {"p": 2, "axes": (view.rank() - 1,), "epsilon": _L2_EPSILON})]

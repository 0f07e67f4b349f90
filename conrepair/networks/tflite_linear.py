"""TFLite's matrix product, recurrent layer and normalization."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from conrepair.graph.layer_graph import Array, Attribute, Parameter
from conrepair.networks.parts import PREVIOUS, LayerPart
from conrepair.networks.tensorflow_convolution import constant_bias
from conrepair.networks.tflite_operator import OperatorView

__all__ = ["fully_connected", "lstm", "parted_gates", "unit_norm"]

_SHUFFLED_WEIGHTS = 1
_L2_EPSILON = 1e-12
"""The kernel's bound of the norm is 1e-6; the vocabulary's is of the sum of squares."""

# The fused LSTM has its gates as input, forget, cell, output.
_PROJECTION_AND_NORMALIZATION = (16, 17, 20, 21, 22, 23)
_GATES = {"W": (1, 4, 2, 3), "R": (5, 8, 6, 7), "B": (12, 15, 13, 14), "P": (9, 11, 10)}
"""The fused LSTM's operands that are one parameter in the vocabulary, which has input, output, forget, cell."""


def fully_connected(view: OperatorView) -> list[LayerPart]:
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
    parts.append(LayerPart("MatMul", attributes, parameters, reads=tuple(reads), shape=product))
    return parts if product == result else [*parts, LayerPart("Reshape", {"shape": result})]


def lstm(view: OperatorView) -> list[LayerPart]:
    """The fused layer, without projection and normalization."""
    options = view.options
    needed = (*_GATES["W"], *_GATES["R"], *_GATES["B"])
    if (
        not all(view.is_constant(place) for place in needed)
        or any(view.has(place) for place in _PROJECTION_AND_NORMALIZATION)
        or options.fusedActivationFunction != 4
        or options.diagonalRecurrentTensors
    ):
        raise ValueError("of another kind than the usual one")
    gates = {role: [view.parameter(place) for place in _GATES[role]] for role in ("W", "R", "B")}
    if all(view.is_constant(place) for place in _GATES["P"]):
        gates["P"] = [view.parameter(place) for place in _GATES["P"]]
    elif any(view.has(place) for place in _GATES["P"]):
        raise ValueError("some peepholes")
    (hidden, _) = gates["W"][0].shape
    parameters = {role: _joined_gates(items, role) for role, items in gates.items()}
    attributes: dict[str, Attribute] = {
        "hidden_size": hidden,
        "direction": "forward",
        "activations": ("Sigmoid", "Tanh", "Tanh"),
        "batch_first": not options.timeMajor,
        "return_sequences": True,
        "cell_clip": float(options.cellClip) or None,
    }
    return [LayerPart("LSTM", attributes, parameters, reads=(0,))]


def _joined_gates(gates: Sequence[Parameter], role: str) -> Parameter:
    """The gates' arrays as one parameter, which has a scale for each row where each gate has one.

    Args:
        gates: In the vocabulary's order.
        role: Of the parameter; a bias has zeros behind, for a second one.
    """
    first, behind = gates[0], len(gates) * gates[0].shape[0] if role == "B" else 0
    shape = (1, len(gates) * first.shape[0] + behind, *first.shape[1:])

    def load() -> Array:
        numbers = [gate.numpy() for gate in gates]
        return np.concatenate([*numbers, *([np.zeros(behind, np.float32)] if behind else [])]).reshape(shape)

    scales = [scale for gate in gates for scale in gate.scales * (gate.shape[0] // max(len(gate.scales), 1))]
    return Parameter(first.name, shape, first.dtype, load, first.bits, tuple(scales))


def parted_gates(role: str, array: Array) -> list[tuple[int, Array]]:
    """A parameter of the fused LSTM as the file has it: places of the gates' operands, each with its numbers.

    Args:
        role: Of the parameter.
        array: In the vocabulary's convention, of one direction.
    """
    places, rows = _GATES[role], array[0]
    if role == "B":  # which the vocabulary has twice, and their sum counts
        rows = rows[: len(rows) // 2] + rows[len(rows) // 2 :]
    return list(zip(places, np.split(rows, len(places)), strict=True))


def unit_norm(view: OperatorView) -> list[LayerPart]:
    """Divided by the norm along the last axis."""
    return [LayerPart("LpNormalization", {"p": 2, "axes": (view.rank() - 1,), "epsilon": _L2_EPSILON})]

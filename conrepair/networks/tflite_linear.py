"""TFLite's matrix products, tables, recurrent layers and normalizations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from conrepair.graph.layer_graph import Array, Attribute, Parameter
from conrepair.networks.tflite_operator import OperatorView, Rule, TfliteStep

__all__ = ["RULES", "parted_gates"]

_SHUFFLED_WEIGHTS = 1
_L2_EPSILON = 1e-12
"""The kernel's bound of the norm is 1e-6; the vocabulary's is of the sum of squares."""

# The fused LSTM has its gates as input, forget, cell, output.
_PROJECTION_AND_NORMALIZATION = (16, 17, 20, 21, 22, 23)
_GATES = {"W": (1, 4, 2, 3), "R": (5, 8, 6, 7), "B": (12, 15, 13, 14), "P": (9, 11, 10)}
"""The fused LSTM's operands that are one parameter in the vocabulary, which has input, output, forget, cell."""


def _fully_connected(view: OperatorView) -> Sequence[TfliteStep] | None:
    if view.options.weightsFormat == _SHUFFLED_WEIGHTS or (view.has(2) and not view.is_constant(2)):
        return None
    data, result, weight = view.shape(0), view.result_shape(), view.shape(1)
    if data is None or result is None or weight is None or not view.varies(0):
        return None
    steps, names = [], view.names(0)
    if (len(result) == 2 and len(data) != 2) or data[-1] != weight[-1]:
        # Without `keepNumDims` the operator itself makes rows of what it's given.
        rows = (int(np.prod(data)) // weight[-1], weight[-1])
        steps.append(TfliteStep("Reshape", names, {"shape": rows}, shape=rows))
        names = ("",)
    attributes: dict[str, Attribute] = {"transpose_a": False, "transpose_b": not view.is_constant(1)}
    parameters = view.optional(bias=2)
    if view.is_constant(1):
        parameters = {"weight": view.weight(), **parameters}
    else:
        names = (*names, *view.names(1))
    product = (*(steps[0].shape or () if steps else data)[:-1], weight[0])
    steps.append(TfliteStep("MatMul", names, attributes, parameters, shape=product))
    if product != result:
        steps.append(TfliteStep("Reshape", ("",), {"shape": result}))
    return steps


def _batch_matmul(view: OperatorView) -> TfliteStep | None:
    left, right = bool(view.options.adjX), bool(view.options.adjY)
    if view.is_constant(0):
        parameter = _matrices(view, 0, turned=left)
        attributes: dict[str, Attribute] = {"transpose_a": False, "transpose_b": right}
        return TfliteStep("MatMul", view.names(1), attributes, {"left": parameter}, written={"adj_x": left})
    if view.is_constant(1):
        parameter = _matrices(view, 1, turned=right)
        attributes = {"transpose_a": left, "transpose_b": False}
        return TfliteStep("MatMul", view.names(0), attributes, {"weight": parameter}, written={"adj_y": right})
    return TfliteStep("MatMul", view.names(0, 1), {"transpose_a": left, "transpose_b": right})


def _matrices(view: OperatorView, position: int, *, turned: bool) -> Parameter:
    order = list(range(view.rank(position)))
    if turned:
        order[-2:] = order[:-3:-1]
    return view.transposed(position, *order)


def _gather(view: OperatorView) -> TfliteStep | None:
    if view.options.batchDims:
        return None
    return TfliteStep(
        "Gather", view.names(), {"axis": view.axis(view.options.axis)}, view.optional(table=0, indices=1)
    )


def _embedding(view: OperatorView) -> TfliteStep | None:
    if not view.is_constant(1):
        return None
    return TfliteStep("Gather", view.names(0), {"axis": 0}, {"table": view.parameter(1)})


def _lstm(view: OperatorView) -> TfliteStep | None:
    options = view.options
    needed = (*_GATES["W"], *_GATES["R"], *_GATES["B"])
    if (
        not all(view.is_constant(place) for place in needed)
        or any(view.has(place) for place in _PROJECTION_AND_NORMALIZATION)
        or options.fusedActivationFunction != 4
        or options.diagonalRecurrentTensors
    ):
        return None
    gates = {role: [view.parameter(place) for place in _GATES[role]] for role in ("W", "R", "B")}
    if all(view.is_constant(place) for place in _GATES["P"]):
        gates["P"] = [view.parameter(place) for place in _GATES["P"]]
    elif any(view.has(place) for place in _GATES["P"]):
        return None
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
    return TfliteStep("LSTM", view.names(0), attributes, parameters)


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


def _local_response(view: OperatorView) -> TfliteStep:
    options, size = view.options, 2 * view.options.radius + 1
    attributes: dict[str, Attribute] = {
        # The vocabulary's alpha is divided by the size.
        "alpha": float(options.alpha) * size,
        "beta": float(options.beta),
        "bias": float(options.bias),
        "size": int(size),
    }
    return TfliteStep("LRN", view.names(0), attributes, channels_last=True)


def _l2(view: OperatorView) -> TfliteStep:
    attributes: dict[str, Attribute] = {"p": 2, "axes": (view.rank() - 1,), "epsilon": _L2_EPSILON}
    return TfliteStep("LpNormalization", view.names(0), attributes)


RULES: Mapping[str, Rule] = {
    "FULLY_CONNECTED": _fully_connected,
    "BATCH_MATMUL": _batch_matmul,
    "GATHER": _gather,
    "EMBEDDING_LOOKUP": _embedding,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _lstm,
    "LOCAL_RESPONSE_NORMALIZATION": _local_response,
    "L2_NORMALIZATION": _l2,
}

"""What systematic faults do to one node of a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import NodeProto

from benchmarks.common.otherwise.work import attribute, attributes
from benchmarks.common.plain_graph import Array, PlainGraph
from benchmarks.systematic.formats import Rounding

__all__ = [
    "KERAS_EPSILON",
    "TORCH_EPSILON",
    "Change",
    "bias_lost",
    "bias_place",
    "channels_rolled",
    "dilation_ignored",
    "gates",
    "input_changed",
    "layer_norm_epsilon",
    "other_epsilon",
    "other_operator",
    "padded_apart",
    "rounded",
    "sides_exchanged",
    "tanh_for_erf",
    "with_attributes",
]

KERAS_EPSILON, TORCH_EPSILON = 1e-3, 1e-5
"""Of norms, by default."""

Change = Callable[[PlainGraph, NodeProto], None]


def rounded(rounding: Rounding) -> Change:
    """Weights through other numbers."""

    def change(graph: PlainGraph, node: NodeProto) -> None:
        axis = -1 if node.op_type == "MatMul" or (node.op_type == "Gemm" and not attribute(node, "transB", 0)) else 0
        for place in (1, 2) if node.op_type == "LSTM" else (1,):
            array = graph.constants[node.input[place]]
            graph.own(node.name, place, rounding(array, 1 if node.op_type == "LSTM" else axis))

    return change


def with_attributes(**wanted: Any) -> Change:
    """Other attributes."""

    def change(graph: PlainGraph, node: NodeProto) -> None:
        outputs = list(node.output)
        graph.add(node.name, node.op_type, *node.input, outputs=len(outputs), **attributes(node) | wanted)
        graph.nodes[node.name].output[:] = outputs

    return change


def other_operator(operator: str, **wanted: Any) -> Change:
    """Another operator of the first input."""

    def change(graph: PlainGraph, node: NodeProto) -> None:
        outputs = list(node.output)
        graph.add(node.name, operator, node.input[0], **wanted)
        graph.nodes[node.name].output[:] = outputs

    return change


def bias_lost(graph: PlainGraph, node: NodeProto) -> None:
    """Zeros for it."""
    place = bias_place(graph, node)
    graph.own(node.name, place, np.zeros_like(graph.constants[node.input[place]]))


def bias_place(graph: PlainGraph, node: NodeProto) -> int:
    """Which input of a layer, or of the sum behind a product, is its bias; -1: none."""
    makers = {value: item.op_type for item in graph.nodes.values() for value in item.output}
    for place in (0, 1) if node.op_type == "Add" else (2,):
        bias = graph.constants.get(node.input[place]) if place < len(node.input) else None
        behind = node.op_type != "Add" or makers.get(node.input[1 - place]) == "MatMul"
        if bias is not None and bias.size > 1 and bias.any() and behind:
            return place
    return -1


def sides_exchanged(graph: PlainGraph, node: NodeProto) -> None:
    """Of a picture; amounts may be computed."""
    order = graph.constant(f"{node.name}/order", [4, 5, 6, 7, 0, 1, 2, 3])
    node.input[1] = graph.add(f"{node.name}/exchanged", "Gather", node.input[1], order, axis=0)


def other_epsilon(graph: PlainGraph, node: NodeProto) -> None:
    """Keras' for PyTorch's, or the other way round."""
    now = attribute(node, "epsilon", TORCH_EPSILON)
    with_attributes(epsilon=TORCH_EPSILON if now > 2 * TORCH_EPSILON else KERAS_EPSILON)(graph, node)


def input_changed(place: int, change: Callable[[Array], Array]) -> Change:
    """Other numbers of a constant input."""
    return lambda graph, node: graph.own(node.name, place, change(graph.constants[node.input[place]]))


def tanh_for_erf(graph: PlainGraph, node: NodeProto) -> None:
    """erf(u) by the tanh that GELU is approximated by: u is the value over the root of two."""
    name, value = node.name, node.input[0]
    cube = graph.add(f"{name}/pow", "Pow", value, graph.constant(f"{name}/three", 3.0))
    cube = graph.add(f"{name}/cubic", "Mul", cube, graph.constant(f"{name}/factor", 0.08943))
    inner = graph.add(f"{name}/sum", "Add", value, cube)
    inner = graph.add(f"{name}/root", "Mul", inner, graph.constant(f"{name}/2/pi", float(2 / np.sqrt(np.pi))))
    node.op_type, node.input[0] = "Tanh", inner


def layer_norm_epsilon(graph: PlainGraph, node: NodeProto) -> None:
    """Keras' own."""
    if node.op_type == "LayerNormalization":
        with_attributes(epsilon=KERAS_EPSILON)(graph, node)
    else:
        graph.own(node.name, 1, KERAS_EPSILON)


def padded_apart(graph: PlainGraph, node: NodeProto) -> None:
    """What's outside a picture is its edge, not zero."""
    pads = attribute(node, "pads", [0] * 4)
    half = len(pads) // 2
    amounts = graph.constant(f"{node.name}/amounts", [0, 0, *pads[:half], 0, 0, *pads[half:]])
    padded = graph.add(f"{node.name}/pad", "Pad", node.input[0], amounts, mode="edge")
    node.input[0] = padded
    with_attributes(pads=[0] * len(pads))(graph, node)


def dilation_ignored(graph: PlainGraph, node: NodeProto) -> None:
    """With pads that keep the size."""
    by = attribute(node, "dilations", [1, 1])[0]
    with_attributes(dilations=[1, 1], pads=[pad // by for pad in attribute(node, "pads", [0] * 4)])(graph, node)


def channels_rolled(graph: PlainGraph, node: NodeProto) -> None:
    """Each channel gets its neighbour's kernel."""
    graph.own(node.name, 1, np.roll(graph.constants[node.input[1]], 1, axis=0))


def gates(graph: PlainGraph, node: NodeProto) -> None:
    """In PyTorch's order (input, forget, cell, output) for ONNX's (input, output, forget, cell)."""
    for place in (1, 2, 3):
        array = graph.constants[node.input[place]]
        parts = np.split(array, array.shape[1] // (array.shape[1] // (8 if place == 3 else 4)), axis=1)
        order = [0, 2, 3, 1] if place != 3 else [0, 2, 3, 1, 4, 6, 7, 5]
        graph.own(node.name, place, np.concatenate([parts[index] for index in order], axis=1))

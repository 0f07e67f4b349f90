"""Small edits of a graph that are faults: a weight, an attribute, an operator."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from onnx import NodeProto

from benchmarks.common.plain_graph import PlainGraph
from benchmarks.judges.network import Draw

__all__ = ["EDITS", "Edit", "edited"]

Edit = Callable[[PlainGraph, Draw], str | None]
"""Changes a graph in place; the name of the node at fault, None where it has no place."""

_NORMALIZATIONS = ("LayerNormalization", "InstanceNormalization", "BatchNormalization")
_ATTRIBUTES = {"alpha": 1.3, "beta": 1.3, "bias": 1.3, "size": 2}  # times which they're wrong
_LOST = (
    *("Relu", "Tanh", "Sigmoid", "Softplus", "Elu", "LeakyRelu", "Selu", "Softsign", "HardSwish", "HardSigmoid"),
    *("Erf", "Clip", "Sin", "Cos", "Atan", "Sqrt", "Abs", "LRN", "Softmax", "LogSoftmax", "Exp", "Log", "Tan"),
    *("LayerNormalization", "InstanceNormalization", "BatchNormalization", "Reciprocal", "Floor", "Acos"),
)
_NEIGHBOURS = {
    "Relu": "Softplus",
    "Tanh": "Softsign",
    "Sigmoid": "HardSigmoid",
    "Elu": "Selu",
    "Sin": "Cos",
    "Erf": "Tanh",
    "ReduceMean": "ReduceSum",
    "ReduceMax": "ReduceMin",
    "Softplus": "Relu",
    "Add": "Sub",
    "MaxPool": "AveragePool",
    "Sub": "Add",
    "Floor": "Ceil",
    "Softmax": "LogSoftmax",
    "Mul": "Add",
}


def _off(share: float) -> Edit:
    """All numbers of one constant off by a share of themselves, up or down."""

    def edit(graph: PlainGraph, draw: Draw) -> str | None:
        places = [
            (name, place, graph.constants[value])
            for name, node in graph.nodes.items()
            for place, value in enumerate(node.input)
            if value in graph.constants
            and graph.constants[value].dtype == np.float32
            and graph.constants[value].any()
        ]
        if not places:
            return None
        name, place, values = places[draw.integers(len(places))]
        graph.own(name, place, np.asarray(values * (1 + share * draw.choice([-1, 1], values.shape)), np.float32))
        return name

    return edit


def _epsilon(graph: PlainGraph, draw: Draw) -> str | None:
    return _changed(
        graph, draw, _NORMALIZATIONS, lambda node: _replaced(node, "epsilon", _value(node, "epsilon", 1e-5) * 1000)
    )


def _attribute(graph: PlainGraph, draw: Draw) -> str | None:
    found = [(node, item) for node in graph.nodes.values() for item in node.attribute if item.name in _ATTRIBUTES]
    found = [(node, item) for node, item in found if node.op_type != "Gemm"]
    if not found:
        return None
    node, item = found[draw.integers(len(found))]
    if item.name == "size":
        item.i = item.i + 2
    else:
        item.f *= _ATTRIBUTES[item.name]
    return str(node.name)


def _lost(graph: PlainGraph, draw: Draw) -> str | None:
    def lose(node: NodeProto) -> None:
        del node.attribute[:], node.input[1:], node.output[1:]
        node.op_type = "Identity"

    return _changed(graph, draw, _LOST, lose)


def _another(graph: PlainGraph, draw: Draw) -> str | None:
    def change(node: NodeProto) -> None:
        node.op_type = _NEIGHBOURS[node.op_type]

    return _changed(graph, draw, tuple(_NEIGHBOURS), change)


def _bias(graph: PlainGraph, draw: Draw) -> str | None:
    def lose(node: NodeProto) -> None:
        del node.input[2:]

    return _changed(graph, draw, ("Gemm", "Conv"), lose, least=3)


def _changed(
    graph: PlainGraph, draw: Draw, sorts: tuple[str, ...], change: Callable[[NodeProto], None], least: int = 0
) -> str | None:
    """One node of some sorts changed."""
    found = [node for node in graph.nodes.values() if node.op_type in sorts and len(node.input) >= least]
    if not found:
        return None
    node = found[draw.integers(len(found))]
    change(node)
    return str(node.name)


def _value(node: NodeProto, name: str, usual: float) -> float:
    return next((item.f for item in node.attribute if item.name == name), usual)


def _replaced(node: NodeProto, name: str, value: float) -> None:
    for item in [item for item in node.attribute if item.name == name]:
        node.attribute.remove(item)
    item = node.attribute.add()
    item.name, item.f, item.type = name, value, item.FLOAT


EDITS: dict[str, Edit] = {
    "weights off by 0.1 %": _off(0.001),
    "weights off by 1 %": _off(0.01),
    "weights off by 10 %": _off(0.1),
    "epsilon": _epsilon,
    "attribute": _attribute,
    "operator lost": _lost,
    "another operator": _another,
    "bias lost": _bias,
}
"""By name."""


def edited(graph: PlainGraph, name: str, draw: Draw) -> Iterator[tuple[str, PlainGraph, str]]:
    """Faulty copies of a graph: what was done, the copy, the node at fault.

    The edit of this name comes first, then those that follow in the list, as not every graph has a place for each.

    Args:
        graph: The right one.
        name: Of an edit.
        draw: Decides about places.
    """
    names = list(EDITS)
    first = names.index(name)
    for other in names[first:] + names[:first]:
        copy = graph.copy()
        guilty = EDITS[other](copy, draw)
        if guilty is not None:
            yield other, copy, guilty

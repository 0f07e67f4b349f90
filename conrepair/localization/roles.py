"""What a tensor is in its network: its operator, that one's family, and whether it's all of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conrepair.graph.layer_graph import LayerGraph, Node
from conrepair.graph.operators import NORMALIZATIONS, POOLINGS, RECTIFIERS, SIGMOIDS
from conrepair.localization.normalizations import normalizations
from conrepair.localization.weights import weight_of

__all__ = ["Role", "roles"]

_NORMALIZATION = "LayerNormalization"
_FAMILIES = (
    RECTIFIERS,
    SIGMOIDS,
    POOLINGS,
    NORMALIZATIONS,
    {"Add", "Sub"},
    {"Mul", "Div"},
    {"Reshape", "Transpose", "Identity", "Cast"},
    {"Softmax", "LogSoftmax"},
    {"Conv", "ConvTranspose"},
)

Role = tuple[str, str, str]


def roles(graph: LayerGraph, names: Sequence[str]) -> list[Role]:
    """What tensors are.

    Args:
        graph: Theirs.
        names: Of the tensors.

    Returns:
        For each its operator, the family that it's of, and "whole" or "part".
    """
    pieces = normalizations(graph)
    return [_role(graph, name, pieces) for name in names]


def _role(graph: LayerGraph, name: str, pieces: Mapping[str, str]) -> Role:
    """What a tensor is: its operator, the operator's family, and whether that is all of it.

    A bias or a normalization behind a layer with weights is a part of that layer, as other libraries write both in
    one: its result is the layer's, and what lies in between is incomplete. So is what lies in a normalization that's
    written in pieces, whose result is the normalization's.
    """
    node = graph.producers.get(name)
    if node is None:
        return ("input", "input", "whole")
    if pieces.get(name) == name:
        return (_NORMALIZATION, _family(_NORMALIZATION), "whole")
    if name in pieces:
        return (node.op, _family(node.op), "part")
    layer = _completed(graph, node)
    family = _family(layer.op)
    goes_on = weight_of(layer) is not None and name not in graph.outputs and _goes_on(graph, name)
    return (layer.op, family, "part" if goes_on else "whole")


def _family(operator: str) -> str:
    return next((str(place) for place, family in enumerate(_FAMILIES) if operator in family), operator)


def _completed(graph: LayerGraph, node: Node) -> Node:
    """The layer with weights that a node adds a factor or an offset to; the node itself where there's none."""
    last = node
    while (name := _changed(graph, last)) is not None:
        before = graph.producers.get(name)
        if before is None or len(graph.consumers.get(name, ())) != 1:
            return node
        if weight_of(before) is not None:
            return before
        last = before
    return node


def _goes_on(graph: LayerGraph, name: str) -> bool:
    """Whether nothing but a factor or an offset reads a tensor; maybe as real numbers, when it's of integers."""
    readers = graph.consumers.get(name, ())
    if len(readers) == 1 and readers[0].op == "Cast" and readers[0].outputs[0] not in graph.outputs:
        readers = graph.consumers.get(readers[0].outputs[0], ())
        return len(readers) == 1 and _changed(graph, readers[0]) == name
    return len(readers) == 1 and _changed(graph, readers[0]) is not None


def _changed(graph: LayerGraph, node: Node) -> str | None:
    """The tensor that a node adds a constant factor or offset to, or the scale of integers that a product gave."""
    if node.op == "BatchNormalization":
        return node.inputs[0]
    if node.op in {"Add", "Sub", "Mul", "Div"} and "operand" in node.parameters and len(node.inputs) == 1:
        return node.inputs[0]
    if node.op != "Mul" or len(node.inputs) == 1:
        return None
    for name, scale in (node.inputs, node.inputs[::-1]):
        cast, shape = graph.producers.get(name), graph.tensors[scale].shape
        if cast is not None and cast.op == "Cast" and shape is not None and len(shape) <= 1:
            product = graph.producers.get(cast.inputs[0])
            if product is not None and weight_of(product) is not None:
                return cast.inputs[0]
    return None

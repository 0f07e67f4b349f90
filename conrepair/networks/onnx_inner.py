"""Constants that graphs in an ONNX node's attributes use: they are parameters of the node, as a loop's weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import onnx_ir

from conrepair.graph.layer_graph import Parameter
from conrepair.networks.onnx_call import OnnxCall
from conrepair.networks.onnx_constants import OnnxConstants
from conrepair.networks.onnx_operators import describe
from conrepair.networks.onnx_source import graphs_of

__all__ = ["inner_parameters"]


def inner_parameters(node: onnx_ir.Node, constants: OnnxConstants, opsets: Mapping[str, int]) -> dict[str, Parameter]:
    """What nodes in a node's graphs bring along, by what it is there.

    Args:
        node: Of any operator.
        constants: Of the model.
        opsets: Versions by domain.
    """
    return dict(_parameters(node, constants, opsets, ""))


def _parameters(
    node: onnx_ir.Node, constants: OnnxConstants, opsets: Mapping[str, int], behind: str
) -> Iterator[tuple[str, Parameter]]:
    for name, graph in graphs_of(node):
        for place, inner in enumerate(graph):
            where = f" of {inner.op_type} {place} in the {name.replace('_', ' ')}{behind}"
            for role, parameter in _own(inner, constants, opsets).items():
                yield role + where, parameter
            yield from _parameters(inner, constants, opsets, where)


def _own(node: onnx_ir.Node, constants: OnnxConstants, opsets: Mapping[str, int]) -> dict[str, Parameter]:
    call = OnnxCall(
        node, str(node.name), str(node.name), opsets.get(node.domain, 1), constants, dict(node.attributes)
    )
    if node.op_type == "DequantizeLinear" and call.is_constant(0):
        real = call.dequantized(0, (1,), 2, axis=int(call.attribute("axis", 1)))
        return {} if real is None else {"x": real}
    describe(call)
    return {role: parameter for part in call.nodes for role, parameter in part.parameters.items()}

"""Some nodes as a model of their own, to see what they compute, and which ones that are."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import onnx
import onnx_ir

from conrepair.ground.onnx_graphs.initializers import constant_of

_IR_VERSION = 10  # that ONNX Runtime reads
_LARGEST = 400  # nodes
GRAPHS = {onnx_ir.AttributeType.GRAPH, onnx_ir.AttributeType.GRAPHS}


@dataclass(frozen=True)
class Leading:
    """What leads to some values.

    Attributes:
        nodes: In an order in which they can be run.
        constants: That they read, by name.
        read: The known values that they read.
    """

    nodes: dict[onnx_ir.Node, None] = field(default_factory=dict)
    constants: dict[str, npt.NDArray[np.generic]] = field(default_factory=dict)
    read: dict[onnx_ir.Value, None] = field(default_factory=dict)


def leading_to(
    wanted: Iterable[onnx_ir.Value],
    known: Container[onnx_ir.Value],
    told: Callable[[onnx_ir.Node], npt.NDArray[np.generic] | None] = lambda _: None,
) -> Leading | None:
    """What computes some values of others and of constants.

    Args:
        wanted: The values.
        known: Where to stop.
        told: The result of a node that needn't be run, if it's that.

    Returns:
        None if other values take part, if there are graphs in the nodes, or too many nodes.
    """
    found = Leading()
    waiting = [(value, False) for value in wanted]
    while waiting:
        value, ready = waiting.pop()
        node, constant = value.producer(), constant_of(value)
        if constant is None and node is not None:
            constant = told(node)
        if value in known:
            found.read[value] = None
        elif constant is not None:
            found.constants[str(value.name)] = constant
        elif node is None or len(found.nodes) > _LARGEST:
            return None
        elif ready:
            found.nodes[node] = None
        elif node not in found.nodes:
            if any(attribute.type in GRAPHS for attribute in node.attributes.values()):
                return None
            waiting.append((value, True))
            waiting += [(item, False) for item in node.inputs if item is not None]
    return found


def computing(
    nodes: Iterable[onnx_ir.Node | onnx.NodeProto],
    fed: Mapping[str, npt.NDArray[np.generic]],
    wanted: Iterable[str],
    opsets: Mapping[str, int],
    constants: Mapping[str, npt.NDArray[np.generic]] | None = None,
) -> onnx.ModelProto:
    """A model of nodes.

    Args:
        nodes: In an order in which they can be run.
        fed: Arrays like those that it's going to read, by name.
        wanted: The tensors that it returns.
        opsets: By domain.
        constants: What it reads besides, and is to be a part of it.
    """
    elements = {name: onnx.helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in fed.items()}
    graph = onnx.helper.make_graph(
        [onnx_ir.to_proto(node) if isinstance(node, onnx_ir.Node) else node for node in nodes],
        "nodes",
        [onnx.helper.make_tensor_value_info(name, elements[name], array.shape) for name, array in fed.items()],
        [onnx.ValueInfoProto(name=name) for name in wanted],
        [onnx.numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
    )
    imports = [onnx.helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    return onnx.helper.make_model(graph, opset_imports=imports, ir_version=_IR_VERSION)


def read_from_outside(node: onnx_ir.Node) -> list[onnx_ir.Value]:
    """Values of the surrounding graph that graphs in a node's attributes read."""
    inner = subgraphs(node)
    if not inner:
        return []
    nested = [item for graph in inner for item in [graph, *graph.subgraphs()]]
    nodes = list({id(item): item for graph in inner for item in graph.all_nodes()}.values())
    own = {id(value) for graph in nested for value in [*graph.inputs, *graph.initializers.values()]}
    own |= {id(value) for item in nodes for value in item.outputs}
    read = [value for item in nodes for value in item.inputs] + [value for graph in nested for value in graph.outputs]
    return list({id(value): value for value in read if value is not None and id(value) not in own}.values())


def subgraphs(node: onnx_ir.Node) -> list[onnx_ir.Graph]:
    """The graphs that a node has as attributes."""
    return [graph for _, graph in graphs_of(node)]


def graphs_of(node: onnx_ir.Node) -> Iterator[tuple[str, onnx_ir.Graph]]:
    """The same, each with the name of its attribute."""
    for name, attribute in node.attributes.items():
        if attribute.type in GRAPHS:
            one = attribute.type == onnx_ir.AttributeType.GRAPH
            yield from ((name, graph) for graph in ([attribute.as_graph()] if one else attribute.as_graphs()))

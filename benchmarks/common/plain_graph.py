"""ONNX graphs of protobuf nodes, to be written by hand and edited without the editors that are under test."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

__all__ = ["Array", "PlainGraph"]

Array = npt.NDArray[Any]

_IR_VERSION = 8
_IR_VERSIONS = {21: 10, 22: 10, 23: 11}  # by the first opset that needs them
_LISTED_AXES = {  # operators whose axes became an input, by the opset from which on they are
    "ReduceMean": 18,
    "ReduceMax": 18,
    "ReduceMin": 18,
    "ReduceL2": 18,
    "ReduceSum": 13,
    "Squeeze": 13,
    "Unsqueeze": 13,
}


class PlainGraph:
    """Nodes, constants, inputs and outputs, all by name.

    A node's only output is called like the node with "_output_0" behind it, its constants like the node, a slash and
    what they are. Nodes needn't be in order.

    Attributes:
        opset: Of the standard domain.
        nodes: By name.
        constants: By name.
        inputs: Name, element type and shape of each.
        outputs: The same.
    """

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.nodes: dict[str, NodeProto] = {}
        self.constants: dict[str, Array] = {}
        self.inputs: dict[str, tuple[int, Sequence[int | str]]] = {}
        self.outputs: dict[str, tuple[int, Sequence[int | str]]] = {}

    @classmethod
    def of(cls, model: onnx.ModelProto) -> PlainGraph:
        """What a file has, with names for all nodes, and constants of nodes among the others.

        Raises:
            ValueError: if it has operators of other domains, or functions.
        """
        opsets = {item.domain or "ai.onnx": item.version for item in model.opset_import}
        if model.functions or any(node.domain not in {"", "ai.onnx"} for node in model.graph.node):
            raise ValueError("it has operators of other domains")
        graph = cls(opsets["ai.onnx"])
        for tensor in model.graph.initializer:
            graph.constants[tensor.name] = numpy_helper.to_array(tensor)
        for place, node in enumerate(model.graph.node):
            if node.op_type == "Constant" and node.attribute[0].name == "value":
                graph.constants[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
                continue
            kept = NodeProto.FromString(node.SerializeToString())
            kept.name = node.name if node.name and node.name not in graph.nodes else f"node_{place}"
            graph.nodes[kept.name] = kept
        for held, values in ((graph.inputs, model.graph.input), (graph.outputs, model.graph.output)):
            for value in values:
                kind = value.type.tensor_type
                if value.name not in graph.constants:
                    held[value.name] = kind.elem_type, [size.dim_param or size.dim_value for size in kind.shape.dim]
        return graph

    def add(self, name: str, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        """A node.

        Args:
            name: Of the node; one of this name is replaced.
            operator: Of the standard domain.
            inputs: Names of values or constants.
            outputs: How many it has.
            attributes: None is left out. Axes of reductions are written as the opset wants them.

        Returns:
            The name of its first output.
        """
        given = {key: value for key, value in attributes.items() if value is not None}
        if "axes" in given and self.opset >= _LISTED_AXES.get(operator, 99):
            inputs = (*inputs, self.constant(f"{name}/axes", np.array(given.pop("axes"), np.int64)))
        names = [f"{name}_output_{place}" for place in range(outputs)]
        self.nodes[name] = helper.make_node(operator, list(inputs), names, name, **given)
        return names[0]

    def constant(self, name: str, array: Array | float | Sequence[int]) -> str:
        """A constant; Python's real numbers are float32, its whole ones int64."""
        if not isinstance(array, np.ndarray | np.generic):
            array = np.array(array)
            array = array.astype(np.float32 if array.dtype.kind == "f" else np.int64)
        self.constants[name] = np.asarray(array)
        return name

    def readers(self, value: str) -> Iterator[tuple[NodeProto, int]]:
        """Who reads a value, and at which input."""
        for node in self.nodes.values():
            for place, name in enumerate(node.input):
                if name == value:
                    yield node, place

    def redirect(self, value: str, other: str, *, but: Sequence[str] = ()) -> None:
        """Make all readers of a value read another one.

        Args:
            value: That they read.
            other: That they'll read.
            but: Names of nodes that stay as they are.
        """
        for node, place in list(self.readers(value)):
            if node.name not in but:
                node.input[place] = other
        if value in self.outputs:
            raise ValueError(f"{value} is an output of the graph")

    def bypass(self, name: str, place: int = 0) -> None:
        """Take a node out; its readers read one of its inputs."""
        node = self.nodes.pop(name)
        self.redirect(node.output[0], node.input[place])

    def own(self, name: str, place: int, array: Array | float) -> None:
        """Give a node a constant of its own; others that share the old one keep it."""
        value = self.constant(f"{name}/{place}.own", array)
        self.nodes[name].input[place] = value

    def copy(self) -> PlainGraph:
        """Another graph with the same content."""
        other = PlainGraph(self.opset)
        other.nodes = {name: NodeProto.FromString(node.SerializeToString()) for name, node in self.nodes.items()}
        other.constants = dict(self.constants)
        other.inputs, other.outputs = dict(self.inputs), dict(self.outputs)
        return other

    def differing(self, other: PlainGraph) -> frozenset[str]:
        """Names of this graph's nodes that the other one hasn't, or has otherwise."""
        return frozenset(
            name for name in self.nodes if name not in other.nodes or self.content(name) != other.content(name)
        )

    def live(self) -> PlainGraph:
        """Another graph, without nodes that no output depends on."""
        other = self.copy()
        other.nodes = {node.name: node for node in other._ordered()}
        return other

    def content(self, name: str) -> tuple[Any, ...]:
        """What a node computes and reads, constants by their numbers; comparable with that of another graph."""
        node = self.nodes[name]
        inputs = tuple(self._hash(name) if name in self.constants else name for name in node.input)
        attributes = tuple(sorted(item.SerializeToString() for item in node.attribute))
        return node.op_type, inputs, attributes

    def _hash(self, name: str) -> str:
        array = self.constants[name]
        return hashlib.sha256(f"{array.dtype}{array.shape}".encode() + array.tobytes()).hexdigest()

    def model(self, *, constant_nodes: bool = False) -> onnx.ModelProto:
        """What can be saved; unused constants and nodes are left out.

        Args:
            constant_nodes: Write small constants as nodes, as the older PyTorch exporter does.
        """
        nodes = self._ordered()
        read = {name for node in nodes for name in node.input}
        initializers, first = [], []
        for name, array in self.constants.items():
            if name not in read:
                continue
            tensor = numpy_helper.from_array(np.asarray(array, order="C"), name)
            if constant_nodes and array.size <= 8:
                first.append(helper.make_node("Constant", [], [name], f"constant {len(first)}", value=tensor))
            else:
                initializers.append(tensor)
        values = [
            [helper.make_tensor_value_info(name, *spec) for name, spec in held.items() if keep(name)]
            for held, keep in ((self.inputs, lambda name: name in read), (self.outputs, lambda _: True))
        ]
        graph = helper.make_graph([*first, *nodes], "network", *values, initializers)
        version = max([_IR_VERSION, *(ir for opset, ir in _IR_VERSIONS.items() if opset <= self.opset)])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=version)
        onnx.checker.check_model(model, full_check=True)
        return model

    def _ordered(self) -> list[NodeProto]:
        """What outputs need, each behind what it reads."""
        producers = {name: node for node in self.nodes.values() for name in node.output}
        needed: set[str] = set()
        ahead = list(self.outputs)
        while ahead:
            node = producers.get(ahead.pop())
            if node is not None and node.name not in needed:
                needed.add(node.name)
                ahead += node.input
        waiting = [node for name, node in self.nodes.items() if name in needed]
        known = {"", *self.constants, *self.inputs}
        ordered: list[NodeProto] = []
        while waiting:
            ready = next((node for node in waiting if known.issuperset(node.input)), None)
            if ready is None:
                raise ValueError(f"the graph has a circle, or a value that nothing makes: {waiting[0].name}")
            waiting.remove(ready)
            ordered.append(ready)
            known.update(ready.output)
        return ordered


FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL

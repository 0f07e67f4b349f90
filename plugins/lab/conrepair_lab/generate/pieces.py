"""Nodes of ONNX that are placed as they are, with the types that they were seen with: no more is known of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import onnx
from onnx import helper

from conrepair.formats.onnx.load.proto_file import nodes_of, rename_read
from conrepair_lab.generate.settings.tensors import TensorType, numpy_type


@dataclass(frozen=True, eq=False)
class Piece:
    """A small graph: what it reads and makes are tensors of numbers, whatever there is inside.

    Attributes:
        op: The operator that it's about; the domain is before it where it isn't the standard's.
        graph: Inputs and outputs say their types; initializers are constants of its own.
    """

    op: str
    graph: onnx.GraphProto

    @cached_property
    def inputs(self) -> tuple[TensorType, ...]:
        """Types of what it reads."""
        return tuple(map(type_of, self.graph.input))

    @cached_property
    def outputs(self) -> tuple[TensorType, ...]:
        """Types of what it makes."""
        return tuple(map(type_of, self.graph.output))

    @cached_property
    def operators(self) -> frozenset[str]:
        """All operators in it, those inside of branches and loops included."""
        return frozenset(map(operator_of, nodes_of(self.graph)))

    def written(
        self, inputs: Sequence[str], outputs: Sequence[str], name: str
    ) -> tuple[list[onnx.NodeProto], list[onnx.TensorProto]]:
        """Nodes and constants of a graph that has it.

        Args:
            inputs: Names of what it reads there.
            outputs: Names of what it makes there; "" for what isn't wanted.
            name: Of its nodes; all other names begin with it.
        """
        given = {item.name: own for item, own in zip(self.graph.input, inputs, strict=True)}
        made = {item.name: own for item, own in zip(self.graph.output, outputs, strict=True) if own}
        within = [item.name for item in self.graph.initializer]
        within += [output for node in self.graph.node for output in node.output if output]
        names = {**{text: f"{name}_{text}" for text in within}, **given, **made}
        nodes = [_renamed(node, names) for node in self.graph.node]
        for place, node in enumerate(nodes):
            node.name = f"{name}_{place}" if place else name
        constants = [onnx.TensorProto.FromString(item.SerializeToString()) for item in self.graph.initializer]
        for item in constants:
            item.name = names[item.name]
        return nodes, constants


def operator_of(node: onnx.NodeProto) -> str:
    """An operator's name; the domain is before it where it isn't the standard's."""
    return f"{node.domain}::{node.op_type}" if node.domain not in ("", "ai.onnx") else str(node.op_type)


def type_of(info: onnx.ValueInfoProto) -> TensorType:
    """The type that a tensor of a graph says."""
    made = info.type.tensor_type
    dtype = helper.tensor_dtype_to_np_dtype(made.elem_type).name
    return TensorType(numpy_type(dtype).name, tuple(size.dim_value for size in made.shape.dim))


def _renamed(node: onnx.NodeProto, names: Mapping[str, str]) -> onnx.NodeProto:
    """A node that reads and makes tensors of other names, in its branches and loops, too."""
    new = onnx.NodeProto.FromString(node.SerializeToString())
    rename_read(new, names)
    new.output[:] = [names.get(name, name) for name in node.output]
    return new

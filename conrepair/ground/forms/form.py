"""A form in which digits are lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx
import onnx_ir

from conrepair.ground.equations.expression import Term, names_in, parse
from conrepair.ground.equations.matching import FLOATS, Match, matched, name_of
from conrepair.ground.equations.writing import widened, written
from conrepair.ground.onnx_graphs.infer_shapes import infer_shapes
from conrepair.ground.runtime.errors import ConversionError


@dataclass(frozen=True)
class Place:
    """The place where a form was found in a graph.

    Attributes:
        form: Its name.
        writing: Which of its writings.
        operator: Of the node that ends it.
        nodes: By name (that of the result where a node has none), the one that ends it first.
        inputs: Tensors that it reads, in the order of the writing's names.
        output: The tensor that it makes.
        numbers: What the nodes say: attributes, axes.
    """

    form: str
    writing: int
    operator: str
    nodes: tuple[str, ...]
    inputs: tuple[str, ...]
    output: str
    numbers: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Writing:
    """How a form stands in a graph: nodes, or an operator whose kernel may compute it (see `equations.expression`).

    Attributes:
        pattern: What is looked for.
        stable: What computes the same and keeps its digits; "" where there's none.
        naive: What systems may compute, one or several with "|" between; by default the pattern, or the forms of
            the operator that `conrepair_lab.accuracy.naive` has.
        sizes: The magnitudes that rounding errors are relative to, where it isn't known in which order they're made.
        kernels: Words of the operator's naive forms that are meant.
        safe: It isn't the form, though a later one would see it there.
    """

    pattern: str
    stable: str = ""
    naive: str = ""
    sizes: str = ""
    kernels: str = ""
    safe: bool = False

    @property
    def call(self) -> Term:
        """The pattern, read."""
        found = parse(self.pattern)
        if not isinstance(found, Term):
            raise TypeError(f"{self.pattern!r} is no operator")
        return found


@dataclass(frozen=True)
class Form:
    """A way to compute that loses digits.

    Attributes:
        name: In a few words.
        words: What is computed, where it loses digits, and why.
        remedy: The stable form in words; "" where there's none.
        writings: How it stands in graphs; of those that end at the same node the first one counts.
        types: Element types in which it's a form.
        wider: The type in which the same nodes are the stable form; None where it's a writing.
    """

    name: str
    words: str
    remedy: str
    writings: tuple[Writing, ...]
    types: frozenset[onnx_ir.DataType] = FLOATS
    wider: onnx_ir.DataType | None = None

    def found(self, model: onnx.ModelProto) -> list[Place]:
        """All places in a model's main graph."""
        return self.found_in(opened(model))

    def found_in(self, graph: onnx_ir.Model) -> list[Place]:
        """The same for a model that is open."""
        places, opset = {}, graph.opset_imports.get("", 1)
        for index, writing in reversed([*enumerate(self.writings)]):
            for node in [node for node in graph.graph if node.op_type == writing.call.operator]:
                match = matched(writing.call, node, opset)
                if match is not None and node.outputs[0].dtype in self.types:
                    places[node] = self._place(index, match)
        found = [places[node] for node in graph.graph if node in places]
        return [place for place in found if not self.writings[place.writing].safe]

    def _place(self, index: int, match: Match) -> Place:
        root, inputs = match.nodes[0], [match.values[name].name for name in names_in(self.writings[index].call)]
        names = tuple(map(name_of, match.nodes))
        output = str(root.outputs[0].name)
        return Place(self.name, index, root.op_type, names, tuple(map(str, inputs)), output, match.numbers)

    def has_stable(self, place: Place) -> bool:
        """Whether there's a stable form for a place."""
        return self.wider is not None or bool(self.writings[place.writing].stable)

    def stable(self, model: onnx.ModelProto, place: Place) -> onnx.ModelProto:
        """A copy of the model with the stable form at a place, in operators of the model's opset.

        Raises:
            ConversionError: if there's none, the place isn't the model's, or the opset has no words for it.
        """
        if self.wider is not None:
            return widened_at(model, place, self.wider)
        graph, writing = opened(model), self.writings[place.writing]
        opset = graph.opset_imports.get("", 1)
        root = next((node for node in graph.graph if node.outputs[0].name == place.output), None)
        match = None if root is None else matched(writing.call, root, opset)
        if match is None or not writing.stable:
            raise ConversionError(f"there's no stable form of {self.name} for {place.operator} '{place.output}'")
        written(writing.stable, match, opset)
        return onnx_ir.to_proto(graph)


def opened(model: onnx.ModelProto) -> onnx_ir.Model:
    """A model with its types and shapes, as a copy that can be changed."""
    result: onnx_ir.Model = onnx_ir.from_proto(model)
    infer_shapes(result)
    return result


def widened_at(model: onnx.ModelProto, place: Place, to: onnx_ir.DataType) -> onnx.ModelProto:
    """A copy of the model with the nodes of a place in another element type, between casts.

    Raises:
        ConversionError: if the place isn't the model's, or its element type isn't known.
    """
    graph = opened(model)
    nodes = [node for node in reversed(graph.graph) if name_of(node) in place.nodes]
    if len(nodes) != len(place.nodes):
        raise ConversionError(f"the model has no nodes {', '.join(place.nodes)}, or several of one name")
    widened(nodes, to, graph.opset_imports.get("", 1))
    return onnx_ir.to_proto(graph)

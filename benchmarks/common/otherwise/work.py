"""A graph that is being written otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
import onnx
from onnx import NodeProto, helper

from benchmarks.common.plain_graph import Array, PlainGraph

__all__ = ["Change", "Work"]

Place = TypeVar("Place")

_SHARE = 0.6  # of places that are written otherwise


class Work:
    """What rewritings need.

    Attributes:
        graph: Edited in place.
        shapes: Of values, None for an open size; only those that could be inferred.
        generator: For places and numbers.
    """

    def __init__(self, model: onnx.ModelProto, generator: np.random.Generator) -> None:
        self.graph = PlainGraph.of(model)
        self.generator = generator
        self.shapes = _shapes(model)
        taken = [name.split("_")[1] for name in self.graph.nodes if name.startswith("otherwise_")]
        self._count = max((int(number) for number in taken if number.isdigit()), default=0)

    def nodes(self, *operators: str) -> list[NodeProto]:
        """All of some operators."""
        return [node for node in self.graph.nodes.values() if node.op_type in operators]

    def chosen(self, places: Iterable[Place]) -> list[Place]:
        """Some of them, one at least if there's any."""
        every = list(places)
        if not every:
            return []
        sure = int(self.generator.integers(len(every)))
        return [item for place, item in enumerate(every) if place == sure or self.generator.random() < _SHARE]

    def constant_of(self, node: NodeProto, place: int) -> Array | None:
        """An input's numbers, if they're known."""
        return self.graph.constants.get(node.input[place]) if place < len(node.input) else None

    def rank(self, value: str) -> int | None:
        """Of a value, if it's known."""
        return len(self.shapes[value]) if value in self.shapes else None

    def only_reader(self, value: str) -> NodeProto | None:
        """Who reads a value, where that's one node and no output of the graph."""
        readers = list(self.graph.readers(value))
        return readers[0][0] if len(readers) == 1 and value not in self.graph.outputs else None

    def add(self, operator: str, *inputs: str | Array, outputs: int = 1, **attributes: Any) -> str:
        """A new node; arrays become constants. Returns its first output."""
        self._count += 1
        name = f"otherwise_{self._count}"
        names = [
            item if isinstance(item, str) else self.graph.constant(f"{name}_constant_{place}", item)
            for place, item in enumerate(inputs)
        ]
        return self.graph.add(name, operator, *names, outputs=outputs, **attributes)

    def numbers(self, array: Any, like: str = "") -> Array:
        """Real numbers; float32, as everything here."""
        return np.asarray(array, np.float32)

    def replace(self, node: NodeProto, value: str) -> None:
        """Let a new value, that nobody reads yet, stand for a node's only result."""
        maker = next(item for item in self.graph.nodes.values() if value in item.output)
        del self.graph.nodes[node.name]
        for place, name in enumerate(maker.output):
            if name == value:
                maker.output[place] = node.output[0]


Change = Callable[[Work], int]
"""Writes some places otherwise, and says how many."""


def attribute(node: NodeProto, name: str, default: Any) -> Any:
    """An attribute's value."""
    found = [helper.get_attribute_value(item) for item in node.attribute if item.name == name]
    return found[0] if found else default


def attributes(node: NodeProto) -> dict[str, Any]:
    """All of them."""
    return {item.name: helper.get_attribute_value(item) for item in node.attribute}


def _shapes(model: onnx.ModelProto) -> dict[str, Sequence[int | None]]:
    graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    found: dict[str, Sequence[int | None]] = {
        value.name: [size.dim_value or None for size in value.type.tensor_type.shape.dim]
        for value in (*graph.input, *graph.value_info, *graph.output)
        if value.type.tensor_type.HasField("shape")
    }
    return found | {tensor.name: list(tensor.dims) for tensor in graph.initializer}

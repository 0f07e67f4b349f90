"""What all patterns do with the graph: follow values, compare, let one node take the place of others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import onnx_ir

from conrepair.importer.region import compute
from conrepair.importer.values import Array
from conrepair.onnx_passes.initializers import constant_of

__all__ = [
    "agree",
    "compute_constants",
    "graph_of",
    "replace_value",
    "scalar_steps",
]

_TOLERANCE = 2e-5
_CHEAP = {"Cast", "Concat", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"}


def compute_constants(graph: onnx_ir.Graph, opsets: Mapping[str, int]) -> None:
    """Note the values of what's only a rearrangement of constants."""
    for node in graph:
        if node.op_type in _CHEAP and all(item is None or constant_of(item) is not None for item in node.inputs):
            for value in node.outputs:
                array = compute(value, {}, opsets)
                if array is not None:
                    value.const_value = onnx_ir.tensor(array, name=value.name)


def replace_value(value: onnx_ir.Value, node: onnx_ir.Node) -> None:
    """Let a new node's output take a value's place; what led to it alone is removed later."""
    producer = value.producer()
    assert producer is not None  # noqa: S101 - it was reached from one
    new, name = node.outputs[0], value.name
    new.shape, new.type = value.shape, value.type
    graph_of(producer).insert_after(producer, node)
    value.replace_all_uses_with(new, replace_graph_outputs=True)
    value.name, new.name = f"{name}_replaced", name


def graph_of(node: onnx_ir.Node) -> onnx_ir.Graph:
    """The graph that a node is in."""
    assert isinstance(node.graph, onnx_ir.Graph)  # noqa: S101 - only nodes of the model's graph are looked at
    return node.graph


def agree(expected: Array | None, got: Array | None) -> bool:
    """Whether two results are the same but for rounding; None is no result."""
    if expected is None or got is None or expected.shape != got.shape:
        return False
    scale = max(float(np.max(np.abs(expected), initial=0)), 1e-3)
    return bool(np.all(np.isfinite(got)) and np.max(np.abs(expected - got), initial=0) <= _TOLERANCE * scale)


def scalar_steps(value: onnx_ir.Value, operators: set[str]) -> Iterator[onnx_ir.Value]:
    """A value, and those it was made from by operators with constants."""
    while True:
        yield value
        producer = value.producer()
        if producer is None or producer.op_type not in operators:
            return
        rest = [item for item in producer.inputs if item is not None and constant_of(item) is None]
        if len({id(item) for item in rest}) != 1:
            return
        value = rest[0]

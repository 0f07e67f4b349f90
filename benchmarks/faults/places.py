"""Where faults can be put."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir

from benchmarks.faults.edits import Array, constant_of
from conrepair.onnx_passes.infer_shapes import rank_of

__all__ = [
    "biases",
    "float_inputs",
    "image_inputs",
    "is_float",
    "nodes_with",
    "operators",
    "rank_of",
    "sizes_of",
    "weights",
]

_FLOATS = {onnx_ir.DataType.FLOAT, onnx_ir.DataType.DOUBLE}
_WEIGHTS = {"Conv": 1, "ConvTranspose": 1, "Gemm": 1, "MatMul": 1, "LSTM": 1, "GRU": 1, "RNN": 1}
_CHANNELS = 3


def operators(*names: str) -> Callable[[onnx_ir.Graph], Sequence[onnx_ir.Node]]:
    """All nodes of some operators."""
    return nodes_with(lambda _: True, *names)


def nodes_with(
    condition: Callable[[onnx_ir.Node], bool], *names: str
) -> Callable[[onnx_ir.Graph], Sequence[onnx_ir.Node]]:
    """The nodes of some operators (of all when none is named) that meet a condition."""

    def find(graph: onnx_ir.Graph) -> Sequence[onnx_ir.Node]:
        return [
            node
            for node in graph
            if node.domain in {"", "ai.onnx"} and (not names or node.op_type in names) and condition(node)
        ]

    return find


def weights(
    condition: Callable[[Array], bool] = lambda _: True,
) -> Callable[[onnx_ir.Graph], Sequence[onnx_ir.Node]]:
    """Nodes whose weights, always the second input, are known and meet a condition."""

    def has(node: onnx_ir.Node) -> bool:
        array = constant_of(node, 1)
        return array is not None and array.dtype.kind == "f" and array.size > 1 and condition(array)

    return nodes_with(has, *_WEIGHTS)


def biases(graph: onnx_ir.Graph) -> Sequence[onnx_ir.Node]:
    """Layers with a known bias, always the third input, that isn't zero everywhere."""

    def has(node: onnx_ir.Node) -> bool:
        array = constant_of(node, 2)
        return array is not None and array.size > 1 and bool(array.any())

    return nodes_with(has, "Conv", "ConvTranspose", "Gemm")(graph)


def float_inputs(graph: onnx_ir.Graph) -> Sequence[onnx_ir.Value]:
    """The graph's inputs of real numbers."""
    return [value for value in graph.inputs if is_float(value) and not value.is_initializer() and value.uses()]


def image_inputs(graph: onnx_ir.Graph) -> Sequence[onnx_ir.Value]:
    """Inputs of pictures with three channels, in either layout."""
    return [value for value in float_inputs(graph) if rank_of(value) == 4 and _CHANNELS in sizes_of(value)[1::2]]


def is_float(value: onnx_ir.Value | None) -> bool:
    """Whether a value holds real numbers of 32 or 64 bits."""
    return value is not None and value.dtype in _FLOATS


def sizes_of(value: onnx_ir.Value | None) -> list[int | None]:
    """Sizes, None where they aren't known; empty for a value of unknown rank."""
    if value is None or value.shape is None:
        return []
    return [int(size) if isinstance(size, int | np.integer) else None for size in value.shape]

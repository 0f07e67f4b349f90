"""LayerNormalization along the last axis."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import onnx_ir

from conrepair.importer.patterns.rewriting import FLOATS, agree, graph_of, replace_value
from conrepair.importer.region import compute
from conrepair.importer.values import Array
from conrepair.onnx_passes.initializers import constant_of, new_initializer
from conrepair.onnx_passes.rewrites.building import only_use

__all__ = ["join_layer_normalization"]


def join_layer_normalization(node: onnx_ir.Node, opsets: Mapping[str, int]) -> None:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias, along the last axis."""
    x = node.inputs[0]
    if x is None or x.dtype not in FLOATS or x.shape is None or not isinstance(x.shape[-1], int):
        return
    width, rank = x.shape[-1], len(x.shape)
    centred = only_use(node.outputs[0])
    if centred is None or centred.op_type != "Sub" or centred.inputs[0] is not x:
        return
    divided = _normalized(centred.outputs[0])
    if divided is None:
        return
    factors = _row(divided, "Mul", width)
    if factors is None:
        return
    scaled, scale = factors
    final, bias = _row(scaled, "Add", width) or (scaled, None)
    for epsilon in _epsilons(divided):
        parts = (scale, np.zeros(width, scale.dtype) if bias is None else bias)
        if _is_layer_normalization(x, final, rank, width, epsilon, parts, opsets):
            graph = graph_of(node)
            inputs = [x, new_initializer(graph, f"{final.name}_scale", scale)]
            inputs += [] if bias is None else [new_initializer(graph, f"{final.name}_bias", bias)]
            attributes = [onnx_ir.AttrInt64("axis", -1), onnx_ir.AttrFloat32("epsilon", epsilon)]
            name = final.producer().name if final.producer() else node.name  # type: ignore[union-attr]
            replace_value(final, onnx_ir.Node("", "LayerNormalization", inputs, attributes, name=name))
            return


def _normalized(centred: onnx_ir.Value) -> onnx_ir.Value | None:
    """The quotient of a centred value and something that's made of it."""
    for use in centred.uses():
        if use.node.op_type == "Div" and use.idx == 0:
            return use.node.outputs[0]
        other = use.node.inputs[1 - use.idx] if use.node.op_type == "Mul" else None
        producer = None if other is None else other.producer()
        if producer is not None and producer.op_type in {"Reciprocal", "Div", "Pow"}:
            return use.node.outputs[0]
    return None


def _row(value: onnx_ir.Value, operator: str, width: int) -> tuple[onnx_ir.Value, Array] | None:
    """What a value becomes by an operator with a constant row, and the row."""
    user = only_use(value)
    if user is None or user.op_type != operator:
        return None
    other = next((constant_of(item) for item in user.inputs if item is not value), None)
    if other is None or other.size != width or other.shape[-1:] != (width,):
        return None
    return user.outputs[0], other.reshape(width)


def _epsilons(value: onnx_ir.Value) -> list[float]:
    """Small constants that are added on the way to a value."""
    found = []
    for ancestor in itertools.islice(_ways(value), 12):
        producer = ancestor.producer()
        if producer is not None and producer.op_type == "Add":
            constants = [constant_of(item) for item in producer.inputs]
            found += [float(item.reshape(())) for item in constants if item is not None and item.size == 1]
    return found


def _ways(value: onnx_ir.Value) -> Iterator[onnx_ir.Value]:
    waiting = [value]
    while waiting:
        value = waiting.pop(0)
        yield value
        producer = value.producer()
        waiting += [] if producer is None else [item for item in producer.inputs if item is not None]


def _is_layer_normalization(
    x: onnx_ir.Value, final: onnx_ir.Value, rank: int, width: int, epsilon: float, parts: Sequence[Array],
    opsets: Mapping[str, int],
) -> bool:  # fmt: skip
    assert x.dtype is not None  # noqa: S101 - the caller looked
    generator = np.random.default_rng(width)
    shape = [size if isinstance(size, int) else 3 for size in x.shape or ()][:rank]
    # Small numbers, too: that's where epsilon shows.
    for size in (1.0, 10 * math.sqrt(epsilon), math.sqrt(epsilon) / 10):
        probe = (generator.normal(size=shape) * size + size).astype(x.dtype.numpy())
        wide = probe.astype(np.float64)
        deviation = wide - wide.mean(-1, keepdims=True)
        variance = np.mean(deviation**2, -1, keepdims=True)
        expected = deviation / np.sqrt(variance + epsilon) * parts[0] + parts[1]
        if not agree(expected, compute(final, {x: probe}, opsets)):
            return False
    return True

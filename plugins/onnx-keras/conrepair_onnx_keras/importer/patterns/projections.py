"""Products with constant matrices, in front of an attention and behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir

from conrepair.ground.equations.expression import parse
from conrepair.ground.equations.matching import matched
from conrepair.ground.onnx_graphs.building import only_use
from conrepair.ground.onnx_graphs.initializers import constant_of
from conrepair_onnx_keras.importer.values import Array

_LAYOUT = {"Reshape", "Transpose", "Squeeze", "Unsqueeze", "Identity", "Slice", "Split", "Gather"}
SCALING = {"Mul", "Div"}


@dataclass(frozen=True)
class Projection:
    """A product with a constant matrix.

    Attributes:
        source: What is multiplied.
        result: The product, with the bias added.
        kernel: The matrix, [in, out].
        bias: The row, [out].
    """

    source: onnx_ir.Value
    result: onnx_ir.Value
    kernel: Array
    bias: Array | None

    @property
    def row(self) -> Array:
        """The bias, or zeros."""
        return np.zeros(self.kernel.shape[1], self.kernel.dtype) if self.bias is None else self.bias


def projection_behind(value: onnx_ir.Value | None, opset: int) -> Projection | None:
    """The projection that a value is a rearrangement of, but for factors."""
    for _ in range(24):
        producer = None if value is None else value.producer()
        if value is None or producer is None:
            return None
        found = _projection(value, opset)
        if found is not None:
            return found
        if producer.op_type in SCALING:
            # The factor may be computed from sizes.
            rest = [item for item in producer.inputs if item is not None and not _is_scalar(item)]
            value = rest[0] if len(rest) == 1 else None
        elif producer.op_type in _LAYOUT:
            value = producer.inputs[0]
        else:
            return None
    return None


def _is_scalar(value: onnx_ir.Value) -> bool:
    if value.shape is not None and all(size == 1 for size in value.shape):
        return True
    producer = value.producer()
    return producer is not None and producer.op_type in {"Constant", "Sqrt"}


_PRODUCTS = ("MatMul(x, kernel) + bias", "MatMul(x, kernel)", "Gemm(x, kernel, bias, {})", "Gemm(x, kernel, {})")
_PLAIN = "alpha=1.0, beta=1.0, transA=0, transB=transB"


def _projection(value: onnx_ir.Value, opset: int) -> Projection | None:
    """The product with a constant matrix that a value is, with or without a bias."""
    producer = value.producer()
    ways = [parse(text.format(_PLAIN)) for text in _PRODUCTS]
    found = [] if producer is None else [matched(way, producer, opset) for way in ways]
    match = next(filter(None, found), None)
    kernel = None if match is None else constant_of(match.values["kernel"])
    if match is None or kernel is None or kernel.ndim != 2:
        return None
    kernel, bias = kernel.T if match.numbers.get("transB") else kernel, constant_of(match.values.get("bias"))
    if "bias" in match.values and (bias is None or bias.shape != kernel.shape[1:]):
        return None
    return Projection(match.values["x"], value, kernel, bias)


def projection_after(value: onnx_ir.Value, opset: int) -> Projection | None:
    """The projection that rearrangements of a value go into."""
    for _ in range(6):
        user = _only_use_of_data(value)
        if user is None:
            return None
        if user.op_type in {"MatMul", "Gemm"} and user.inputs[0] is value:
            following = only_use(user.outputs[0])
            added = following.outputs[0] if following is not None and following.op_type == "Add" else user.outputs[0]
            return _projection(added, opset) or _projection(user.outputs[0], opset)
        if user.op_type not in _LAYOUT or user.inputs[0] is not value:
            return None
        value = user.outputs[0]
    return None


def _only_use_of_data(value: onnx_ir.Value) -> onnx_ir.Node | None:
    """The only node that uses a value, those apart that ask for its shape."""
    users = [use.node for use in value.uses() if use.node.op_type != "Shape"]
    return users[0] if len(users) == 1 and not value.is_graph_output() else None


def rank_three(value: onnx_ir.Value) -> onnx_ir.Value | None:
    """A projection's result, once its axes are apart again."""
    product = value.producer()
    flat = product is not None and product.op_type == "Gemm"
    if value.shape is not None:
        flat = len(value.shape) != 3
    if not flat:
        return value
    user = _only_use_of_data(value)
    return user.outputs[0] if user is not None and user.op_type == "Reshape" and user.inputs[0] is value else None


def with_three_axes(value: onnx_ir.Value) -> onnx_ir.Value | None:
    """What a projection is made of, before its axes were joined for a matrix product."""
    for _ in range(3):
        if value.shape is None or len(value.shape) == 3:
            return value
        producer = value.producer()
        if producer is None or producer.op_type != "Reshape" or producer.inputs[0] is None:
            return None
        value = producer.inputs[0]
    return None


def separated(found: Sequence[Projection]) -> list[Projection] | None:
    """Query, key and value apart, where one product computes two or all of them."""
    query, key, value = found
    groups: dict[onnx_ir.Value, list[int]] = {}
    for index, item in enumerate(found):
        groups.setdefault(item.result, []).append(index)
    result: list[Projection] = [query, key, value]
    for indices in groups.values():
        whole = found[indices[0]]
        if whole.kernel.shape[1] % len(indices):
            return None
        kernels = np.split(whole.kernel, len(indices), axis=1)
        biases = [None] * len(indices) if whole.bias is None else np.split(whole.bias, len(indices))
        for index, kernel, bias in zip(indices, kernels, biases, strict=True):
            result[index] = Projection(whole.source, whole.result, kernel, bias)
    return result

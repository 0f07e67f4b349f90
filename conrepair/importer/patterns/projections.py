"""Products with constant matrices, in front of an attention and behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir

from conrepair.importer.values import Array
from conrepair.onnx_passes.initializers import constant_of
from conrepair.onnx_passes.rewrites.building import only_use

__all__ = [
    "SCALING",
    "Projection",
    "projection_after",
    "projection_behind",
    "rank_three",
    "separated",
    "with_three_axes",
]

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


def projection_behind(value: onnx_ir.Value | None) -> Projection | None:
    """The projection that a value is a rearrangement of, but for factors."""
    for _ in range(24):
        producer = None if value is None else value.producer()
        if value is None or producer is None:
            return None
        found = _projection(value)
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


def _projection(value: onnx_ir.Value) -> Projection | None:
    """The product with a constant matrix that a value is, with or without a bias."""
    producer, bias, result = value.producer(), None, value
    if producer is not None and producer.op_type == "Add":
        rows = [constant_of(item) for item in producer.inputs]
        rest = [item for item, row in zip(producer.inputs, rows, strict=True) if row is None]
        bias = next((row for row in rows if row is not None and row.ndim == 1), None)
        if bias is None or len(rest) != 1 or rest[0] is None:
            return None
        producer = rest[0].producer()
    if producer is None or producer.op_type not in {"MatMul", "Gemm"} or producer.inputs[0] is None:
        return None
    kernel = constant_of(producer.inputs[1])
    if kernel is None or kernel.ndim != 2:
        return None
    if producer.op_type == "Gemm":
        plain = {"alpha": 1.0, "beta": 1.0, "transA": 0}
        if bias is not None or any(
            name in producer.attributes and producer.attributes[name].value != usual for name, usual in plain.items()
        ):
            return None
        transposed = producer.attributes.get("transB")
        kernel = kernel.T if transposed is not None and transposed.value else kernel
        if len(producer.inputs) > 2:
            bias = constant_of(producer.inputs[2])
            if bias is None or bias.ndim != 1:
                return None
    if bias is not None and bias.shape != kernel.shape[1:]:
        return None
    return Projection(producer.inputs[0], result, kernel, bias)


def projection_after(value: onnx_ir.Value) -> Projection | None:
    """The projection that rearrangements of a value go into."""
    for _ in range(6):
        user = _only_use_of_data(value)
        if user is None:
            return None
        if user.op_type in {"MatMul", "Gemm"} and user.inputs[0] is value:
            following = only_use(user.outputs[0])
            with_bias = (
                _projection(following.outputs[0]) if following is not None and following.op_type == "Add" else None
            )
            return with_bias or _projection(user.outputs[0])
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

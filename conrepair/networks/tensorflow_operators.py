"""The operators of the neutral graph that each operator of TensorFlow stands for."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import tensorflow as tf

from conrepair.graph.layer_graph import Array, Attribute, Parameter
from conrepair.graph.operators import OPERATORS
from conrepair.networks import tensorflow_shared as shared
from conrepair.networks.parts import LayerPart
from conrepair.networks.tensorflow_convolution import convolution, matrix_product, pooling, transposed_convolution
from conrepair.networks.tensorflow_rules import TensorflowOperation, native_part

__all__ = ["NAMES", "RESIZES", "parts_of"]

_SHARED = {name: op for name, op in {**shared.BINARY, **shared.UNARY}.items() if hasattr(tf.raw_ops, name)}
_BINARY = {"AddV2": "Add", "RealDiv": "Div"}
_UNARY = {
    "Rint": "Round",
    "Inv": "Reciprocal",
    **dict.fromkeys(("StopGradient", "PreventGradient", "CheckNumerics", "EnsureShape", "Snapshot"), "Identity"),
}
NAMES = {op: name for name, op in reversed({**_BINARY, **_SHARED, **_UNARY}.items())}
"""TensorFlow's operator for one of the vocabulary that reads one or two tensors; of several, the one to write."""

RESIZES = {**shared.RESIZES, "ResizeBicubic": "cubic"}


def _concat(operation: TensorflowOperation) -> list[LayerPart]:
    count = len(operation.inputs) - 1
    (axis,) = operation.numbers(count)
    return shared.concatenation(operation, count, axis % len(operation.result_sizes()))


def _gather(operation: TensorflowOperation) -> list[LayerPart]:
    if "batch_dims" in operation.definition.attr and operation.option("batch_dims"):
        raise ValueError("of each batch its own")
    return shared.gathered(operation, operation.numbers(2)[0] if operation.definition.op == "GatherV2" else 0)


def _bias(operation: TensorflowOperation) -> list[LayerPart]:
    rank, last = operation.rank(), operation.channels_last

    def arrange(bias: Array) -> Array:
        return bias if last else bias.reshape(-1, *[1] * (rank - 2))

    return [LayerPart("Add", {"constant_first": False}, {"operand": operation.parameter(1, arrange)}, last)]


def _batch_normalization(operation: TensorflowOperation) -> list[LayerPart]:
    training = bool(operation.option("is_training"))
    roles = ("scale", "bias") if training else ("scale", "bias", "mean", "variance")
    parameters: dict[str, Parameter] = {role: operation.parameter(index) for index, role in enumerate(roles, start=1)}
    attributes: dict[str, Attribute] = {"epsilon": float(operation.option("epsilon")), "training_mode": training}
    return [LayerPart("BatchNormalization", attributes, parameters, operation.channels_last)]


def _einsum(operation: TensorflowOperation) -> list[LayerPart]:
    equation = operation.option("equation").replace(" ", "")
    if len(operation.inputs) == 2 and not operation.is_constant(0) and operation.is_constant(1):
        operands, _, result = equation.partition("->")
        given, _, kernel = operands.partition(",")
        if len(kernel) == 2 and given.endswith(kernel[0]) and result == given[:-1] + kernel[1]:
            attributes: dict[str, Attribute] = {"transpose_a": False, "transpose_b": False}
            return [LayerPart("MatMul", attributes, {"weight": operation.parameter(1)}, True)]
    if any(operation.is_constant(index) for index in range(len(operation.inputs))):
        raise ValueError("with a constant")
    return [LayerPart("Einsum", {"equation": equation})]


_RULES: dict[str, Callable[[TensorflowOperation], list[LayerPart]]] = {
    **{name: rule for name, rule in shared.RULES.items() if hasattr(tf.raw_ops, name)},
    **{name: shared.fixed(op) for name, op in _UNARY.items()},
    **{name: shared.binary(op) for name, op in _BINARY.items()},
    "LRN": shared.local_response,
    "DepthwiseConv2dNative": convolution,
    **dict.fromkeys(("Conv2DBackpropInput", "Conv3DBackpropInputV2"), transposed_convolution),
    **dict.fromkeys(("MaxPool", "MaxPool3D"), pooling("MaxPool")),
    **dict.fromkeys(("AvgPool", "AvgPool3D"), pooling("AveragePool", count_include_pad=False)),
    "BiasAdd": _bias,
    **dict.fromkeys(("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"), _batch_normalization),
    "MatMul": matrix_product("transpose_a", "transpose_b"),
    **dict.fromkeys(("BatchMatMulV2", "BatchMatMulV3"), shared.RULES["BatchMatMul"]),
    "Einsum": _einsum,
    "ConcatV2": _concat,
    **dict.fromkeys(("Gather", "GatherV2", "ResourceGather"), _gather),
    "ResizeBicubic": shared.resized("cubic"),
}


def parts_of(operation: TensorflowOperation) -> list[LayerPart]:
    """Take an operator apart.

    Returns:
        At least one part; the last one gives the operator's results.
    """
    native = operation.definition.op
    rule = _RULES.get(native)
    parts: list[LayerPart] = []
    if rule is not None:
        # An operator whose sizes aren't known, or settings computed, stays as it is.
        try:
            parts = rule(operation)
        except (KeyError, TypeError, ValueError):
            parts = []
    if not parts:
        parts = [native_part(operation, f"TensorFlow{native}" if native in OPERATORS else native)]
    return [part if part.native else dataclasses.replace(part, native=native) for part in parts]

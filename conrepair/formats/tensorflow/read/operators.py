"""The operators of the neutral graph that each operator of TensorFlow stands for."""

from __future__ import annotations

import dataclasses
from functools import partial

import tensorflow as tf

from conrepair.formats.networks.parts import LayerPart, Rules
from conrepair.formats.tensorflow.read import shared
from conrepair.formats.tensorflow.read.convolution import convolution, matrix_product, pooling, transposed_convolution
from conrepair.formats.tensorflow.read.rules import TensorflowOperation, native_part
from conrepair.ground.graph.layer_graph import Array, Attribute, Parameter
from conrepair.ground.graph.operators import OPERATORS

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


_RULES = Rules({name: rule for name, rule in shared.RULES.items() if hasattr(tf.raw_ops, name)})
_RULES.named(_UNARY, shared.fixed)
_RULES.named(_BINARY, shared.binary)
_RULES.of("LRN")(shared.local_response)
_RULES.of("Conv", "DepthwiseConv2dNative")(convolution)
_RULES.of("ConvTranspose", "Conv2DBackpropInput", "Conv3DBackpropInputV2")(transposed_convolution)
_RULES.of("MaxPool", "MaxPool", "MaxPool3D")(pooling)
_RULES.of("AveragePool", "AvgPool", "AvgPool3D")(pooling)
_RULES.of("MatMul")(partial(matrix_product, left="transpose_a", right="transpose_b"))
_RULES.update(dict.fromkeys(("BatchMatMulV2", "BatchMatMulV3"), shared.RULES["BatchMatMul"]))
_RULES.of("Resize", "ResizeBicubic")(partial(shared.resized, mode=RESIZES["ResizeBicubic"]))


@_RULES.of("Concat", "ConcatV2")
def _concat(op: str, operation: TensorflowOperation) -> list[LayerPart]:
    count = len(operation.inputs) - 1
    (axis,) = operation.numbers(count)
    return shared.concatenation(op, operation, count=count, axis=axis % len(operation.result_sizes()))


@_RULES.of("Gather", "Gather", "GatherV2", "ResourceGather")
def _gather(op: str, operation: TensorflowOperation) -> list[LayerPart]:
    if "batch_dims" in operation.definition.attr and operation.option("batch_dims"):
        raise ValueError("of each batch its own")
    return shared.gathered(op, operation, operation.numbers(2)[0] if operation.definition.op == "GatherV2" else 0)


@_RULES.of("Add", "BiasAdd")
def _bias(op: str, operation: TensorflowOperation) -> list[LayerPart]:
    rank, last = operation.rank(), operation.channels_last

    def arrange(bias: Array) -> Array:
        return bias if last else bias.reshape(-1, *[1] * (rank - 2))

    return [LayerPart(op, {"constant_first": False}, {"operand": operation.parameter(1, arrange)}, last)]


@_RULES.of("BatchNormalization", "FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def _batch_normalization(op: str, operation: TensorflowOperation) -> list[LayerPart]:
    training = bool(operation.option("is_training"))
    roles = ("scale", "bias") if training else ("scale", "bias", "mean", "variance")
    parameters: dict[str, Parameter] = {role: operation.parameter(index) for index, role in enumerate(roles, start=1)}
    attributes: dict[str, Attribute] = {"epsilon": float(operation.option("epsilon")), "training_mode": training}
    return [LayerPart(op, attributes, parameters, operation.channels_last)]


@_RULES.of("Einsum")
def _einsum(op: str, operation: TensorflowOperation) -> list[LayerPart]:
    equation = operation.option("equation").replace(" ", "")
    if len(operation.inputs) == 2 and not operation.is_constant(0) and operation.is_constant(1):
        operands, _, result = equation.partition("->")
        given, _, kernel = operands.partition(",")
        if len(kernel) == 2 and given.endswith(kernel[0]) and result == given[:-1] + kernel[1]:
            attributes: dict[str, Attribute] = {"transpose_a": False, "transpose_b": False}
            return [LayerPart("MatMul", attributes, {"weight": operation.parameter(1)}, True)]
    if any(operation.is_constant(index) for index in range(len(operation.inputs))):
        raise ValueError("with a constant")
    return [LayerPart(op, {"equation": equation})]


def parts_of(operation: TensorflowOperation) -> list[LayerPart]:
    """Take an operator apart.

    Returns:
        At least one part; the last one gives the operator's results.
    """
    native = operation.definition.op
    parts = _RULES.parts(native, operation)
    if not parts:
        parts = [native_part(operation, f"TensorFlow{native}" if native in OPERATORS else native)]
    return [part if part.native else dataclasses.replace(part, native=native) for part in parts]

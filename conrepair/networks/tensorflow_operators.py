"""The operators of the neutral graph that each operator of TensorFlow stands for."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import tensorflow as tf

from conrepair.graph.layer_graph import Array, Attribute, Parameter
from conrepair.graph.operators import FUNCTIONS, OPERATORS
from conrepair.networks import tensorflow_shape as shape
from conrepair.networks import tensorflow_view as elementwise
from conrepair.networks.parts import LayerPart
from conrepair.networks.tensorflow_convolution import convolution, matrix_product, pooling, transposed_convolution
from conrepair.networks.tensorflow_rules import TensorflowOperation, native_part

__all__ = ["NAMES", "REDUCTIONS", "RESIZES", "parts_of"]

_BINARY = {
    "AddV2": "Add",
    "Add": "Add",
    "Mul": "Mul",
    "Maximum": "Max",
    "Minimum": "Min",
    "Equal": "Equal",
    "Sub": "Sub",
    "RealDiv": "Div",
    "Div": "Div",
    "Pow": "Pow",
    "FloorMod": "Mod",
    "Greater": "Greater",
    "GreaterEqual": "GreaterOrEqual",
    "Less": "Less",
    "LessEqual": "LessOrEqual",
    "LogicalAnd": "And",
    "LogicalOr": "Or",
}
_UNARY = {
    **{name: name for name in (*FUNCTIONS, "Elu", "Selu") if hasattr(tf.raw_ops, name)},
    "Rint": "Round",
    "LogicalNot": "Not",
    "Inv": "Reciprocal",
    **dict.fromkeys(("StopGradient", "PreventGradient", "CheckNumerics", "EnsureShape", "Snapshot"), "Identity"),
}
NAMES = {op: name for name, op in reversed({**_BINARY, **_UNARY}.items())}
"""TensorFlow's operator for one of the vocabulary that reads one or two tensors; of several, the one to write."""

REDUCTIONS = {name: f"Reduce{name}" for name in ("Mean", "Sum", "Max", "Min", "Prod")}
RESIZES = {"ResizeBilinear": "linear", "ResizeNearestNeighbor": "nearest", "ResizeBicubic": "cubic"}


def _concat(operation: TensorflowOperation) -> list[LayerPart]:
    count = len(operation.inputs) - 1
    (axis,) = operation.numbers(count)
    return shape.concatenation(operation, count, axis % len(operation.result_sizes()))


def _gather(operation: TensorflowOperation) -> list[LayerPart]:
    if "batch_dims" in operation.definition.attr and operation.option("batch_dims"):
        raise ValueError("of each batch its own")
    return shape.gathered(operation, operation.numbers(2)[0] if operation.definition.op == "GatherV2" else 0)


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
    **{name: elementwise.fixed(op, OPERATORS[op].attributes) for name, op in _UNARY.items()},
    **{name: elementwise.binary(op) for name, op in _BINARY.items()},
    **{name: elementwise.along_last(name) for name in ("Softmax", "LogSoftmax")},
    "Relu6": elementwise.fixed("Clip", {"min": 0.0, "max": 6.0}),
    "LeakyRelu": elementwise.leaky,
    "Cast": elementwise.cast,
    "LRN": elementwise.local_response,
    "SelectV2": elementwise.where,
    **dict.fromkeys(("Conv2D", "Conv3D", "DepthwiseConv2dNative"), convolution),
    **dict.fromkeys(("Conv2DBackpropInput", "Conv3DBackpropInputV2"), transposed_convolution),
    **dict.fromkeys(("MaxPool", "MaxPool3D"), pooling("MaxPool")),
    **dict.fromkeys(("AvgPool", "AvgPool3D"), pooling("AveragePool", count_include_pad=False)),
    "BiasAdd": _bias,
    **dict.fromkeys(("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"), _batch_normalization),
    "MatMul": matrix_product("transpose_a", "transpose_b"),
    **dict.fromkeys(("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"), matrix_product("adj_x", "adj_y")),
    "Einsum": _einsum,
    **dict.fromkeys(("Reshape", "Squeeze", "ExpandDims"), shape.reshaped),
    "Transpose": shape.transposed,
    **{name: shape.reduction(op) for name, op in REDUCTIONS.items()},
    "ArgMax": shape.place("ArgMax"),
    "ArgMin": shape.place("ArgMin"),
    "Cumsum": shape.cumulative_sum,
    **dict.fromkeys(("Pad", "PadV2"), shape.padded),
    "MirrorPad": shape.mirrored,
    "SpaceToBatchND": shape.batches("SpaceToBatch", "pads"),
    "BatchToSpaceND": shape.batches("BatchToSpace", "crops"),
    "ConcatV2": _concat,
    "Pack": shape.stacked,
    "Split": shape.split(axis=0, data=1),
    "SplitV": shape.split(axis=2, data=0),
    "StridedSlice": shape.strided_slice,
    "Slice": shape.sliced,
    **dict.fromkeys(("Gather", "GatherV2", "ResourceGather"), _gather),
    "Tile": shape.tiled,
    "BroadcastTo": shape.expanded,
    **{name: shape.resized(mode) for name, mode in RESIZES.items()},
    "DepthToSpace": shape.block_mover("DepthToSpace", mode="DCR"),
    "SpaceToDepth": shape.block_mover("SpaceToDepth"),
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

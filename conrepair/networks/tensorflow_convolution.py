"""Operators of TensorFlow with weights or windows."""

from __future__ import annotations

import numpy as np

from conrepair.graph.layer_graph import Array, Attribute, Parameter
from conrepair.networks.parts import LayerPart, out_in_kernel, same_pads
from conrepair.networks.tensorflow_rules import Rule, TensorflowOperation

__all__ = ["RULES"]


def _spatial(operation: TensorflowOperation, values: tuple[int, ...]) -> tuple[int, ...]:
    """The entries of the axes that a window slides along."""
    return tuple(map(int, values[1:-1] if operation.channels_last else values[2:]))


def _window(operation: TensorflowOperation, kernel: tuple[int, ...], *, full: int = 0) -> dict[str, Attribute]:
    """The attributes of everything that slides.

    Args:
        operation: The operator.
        kernel: Its sizes.
        full: Which input has the sizes that "SAME" pads; -1 for the result.
    """
    strides = _spatial(operation, operation.attribute("strides"))
    ones = (1,) * len(kernel)
    has_dilations = "dilations" in operation.definition.attr
    dilations = _spatial(operation, operation.attribute("dilations")) if has_dilations else ones
    padding = operation.attribute("padding")
    pads: tuple[int, ...] | None = (0,) * (2 * len(kernel))
    automatic = "NOTSET"
    if padding == "SAME":
        shape = operation.result() if full < 0 else operation.shape(full)
        pads = same_pads(_spatial(operation, shape), kernel, strides, dilations) if shape else None
        automatic = "NOTSET" if shape else "SAME_UPPER"
    elif padding == "EXPLICIT":
        pairs = np.reshape(operation.attribute("explicit_paddings"), (-1, 2))
        inner = pairs[1:-1] if operation.channels_last else pairs[2:]
        pads = (*map(int, inner[:, 0]), *map(int, inner[:, 1]))
    return {
        "kernel_shape": kernel,
        "strides": strides,
        "pads": pads,
        "dilations": dilations,
        "auto_pad": automatic,
    }


def _depthwise_kernel(kernel: Array) -> Array:
    """[*kernel, channels, multiplier] as [channels * multiplier, 1, *kernel]."""
    return np.moveaxis(kernel, (-2, -1), (0, 1)).reshape(-1, 1, *kernel.shape[:-2])


def _convolution(operation: TensorflowOperation) -> list[LayerPart]:
    last, kernel = operation.channels_last, operation.sizes(1)
    shape = operation.sizes(0)
    channels = shape[-1] if last else shape[1]
    attributes = _window(operation, kernel[:-2]) | {"group": channels // kernel[-2]}
    return [LayerPart("Conv", attributes, {"weight": operation.parameter(1, out_in_kernel)}, last)]


def _depthwise(operation: TensorflowOperation) -> list[LayerPart]:
    kernel = operation.sizes(1)
    attributes = _window(operation, kernel[:-2]) | {"group": kernel[-2]}
    weight = operation.parameter(1, _depthwise_kernel)
    return [LayerPart("Conv", attributes, {"weight": weight}, operation.channels_last)]


def _transposed(operation: TensorflowOperation) -> list[LayerPart]:
    """The gradient of the convolution that makes the input's sizes from the output's."""
    kernel = operation.sizes(1)[:-2]
    attributes = _window(operation, kernel, full=-1)
    before, after = _spatial(operation, operation.sizes(2)), _spatial(operation, operation.result_sizes())
    pads = np.reshape(np.asarray(attributes["pads"]), (2, -1)).sum(0)
    widths = (np.array(kernel) - 1) * attributes["dilations"] + 1
    full = (np.array(before) - 1) * attributes["strides"] + widths
    extra = tuple(map(int, after - (full - pads)))
    parameters = {"weight": operation.parameter(1, out_in_kernel)}
    attributes |= {"group": 1, "output_padding": extra}
    return [LayerPart("ConvTranspose", attributes, parameters, operation.channels_last, reads=(2,))]


def _pool(op: str) -> Rule:
    def rule(operation: TensorflowOperation) -> list[LayerPart]:
        attributes = _window(operation, _spatial(operation, operation.attribute("ksize"))) | {"ceil_mode": False}
        if op == "AveragePool":
            attributes["count_include_pad"] = False
        return [LayerPart(op, attributes, channels_last=operation.channels_last)]

    return rule


def _bias(operation: TensorflowOperation) -> list[LayerPart]:
    rank = len(operation.sizes(0))
    last = operation.channels_last

    def arrange(bias: Array) -> Array:
        return bias if last else bias.reshape(-1, *[1] * (rank - 2))

    return [LayerPart("Add", {"constant_first": False}, {"operand": operation.parameter(1, arrange)}, last)]


def _batch_normalization(operation: TensorflowOperation) -> list[LayerPart]:
    training = bool(operation.attribute("is_training"))
    roles = ("scale", "bias") if training else ("scale", "bias", "mean", "variance")
    parameters: dict[str, Parameter] = {role: operation.parameter(index) for index, role in enumerate(roles, start=1)}
    attributes: dict[str, Attribute] = {
        "epsilon": float(operation.attribute("epsilon")),
        "training_mode": training,
    }
    return [LayerPart("BatchNormalization", attributes, parameters, operation.channels_last)]


def _matmul(left: str, right: str) -> Rule:
    """A product; `left` and `right` are what the attributes that transpose are called."""

    def rule(operation: TensorflowOperation) -> list[LayerPart]:
        first, second = bool(operation.attribute(left)), bool(operation.attribute(right))
        attributes: dict[str, Attribute] = {"transpose_a": first, "transpose_b": second}
        if operation.is_tensor(0) and operation.is_tensor(1):
            return [LayerPart("MatMul", attributes, {}, True)]
        if not operation.is_tensor(0):
            raise ValueError("a constant times a tensor")
        weight = operation.parameter(1, (lambda matrix: np.swapaxes(matrix, -1, -2)) if second else None)
        return [LayerPart("MatMul", attributes | {"transpose_b": False}, {"weight": weight}, True)]

    return rule


def _einsum(operation: TensorflowOperation) -> list[LayerPart]:
    equation = operation.attribute("equation").replace(" ", "")
    if len(operation.inputs) == 2 and operation.is_tensor(0) and not operation.is_tensor(1):
        operands, _, result = equation.partition("->")
        given, _, kernel = operands.partition(",")
        if len(kernel) == 2 and given.endswith(kernel[0]) and result == given[:-1] + kernel[1]:
            attributes: dict[str, Attribute] = {"transpose_a": False, "transpose_b": False}
            return [LayerPart("MatMul", attributes, {"weight": operation.parameter(1)}, True)]
    if not all(operation.is_tensor(index) for index in range(len(operation.inputs))):
        raise ValueError("with a constant")
    return [LayerPart("Einsum", {"equation": equation})]


RULES: dict[str, Rule] = {
    **dict.fromkeys(("Conv2D", "Conv3D"), _convolution),
    "DepthwiseConv2dNative": _depthwise,
    **dict.fromkeys(("Conv2DBackpropInput", "Conv3DBackpropInputV2"), _transposed),
    **dict.fromkeys(("MaxPool", "MaxPool3D"), _pool("MaxPool")),
    **dict.fromkeys(("AvgPool", "AvgPool3D"), _pool("AveragePool")),
    "BiasAdd": _bias,
    **dict.fromkeys(("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"), _batch_normalization),
    "MatMul": _matmul("transpose_a", "transpose_b"),
    **dict.fromkeys(("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"), _matmul("adj_x", "adj_y")),
    "Einsum": _einsum,
}

"""Convolutions, poolings and fully connected layers of Keras."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import keras
from keras import layers

from conrepair.formats.keras.read.activations import activation_parts
from conrepair.formats.keras.read.parts import KerasCall, channels_last, weight
from conrepair.formats.networks.parts import (
    LayerPart,
    Rules,
    depthwise_weight,
    out_in_kernel,
    transposed_window,
    window,
)
from conrepair.ground.graph.layer_graph import Attribute, Parameter
from conrepair.ground.graph.operators import OPERATORS

RULES = Rules()


def _spatial(shape: tuple[int, ...] | None, *, last: bool) -> tuple[int, ...] | None:
    return shape and (shape[1:-1] if last else shape[2:])


def _window(
    call: KerasCall, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> dict[str, Attribute]:
    """The attributes of everything that slides over its input."""
    layer = call.operation
    sizes = _spatial(call.shapes[0], last=channels_last(layer)) if call.resolved else None
    return window(kernel, strides, dilations, layer.padding, sizes)


def _kernel_window(call: KerasCall) -> dict[str, Attribute]:
    layer = call.operation
    return _window(call, layer.kernel_size, layer.strides, layer.dilation_rate)


def _with_bias(parameters: dict[str, Parameter], layer: Any) -> dict[str, Parameter]:
    return {**parameters, "bias": weight(layer.bias)} if layer.bias is not None else parameters


def _with_activation(call: KerasCall, part: LayerPart) -> list[LayerPart]:
    shape = call.outputs[0]
    rank = len(shape) if shape else None
    activation = activation_parts(call.operation.activation, rank, channels_last=part.channels_last)
    return [replace(part, shape=shape), *activation]


def _plain_only(layer: Any) -> None:
    if getattr(layer, "quantization_mode", None):
        raise ValueError("quantized by Keras")


@RULES.of("Conv", layers.Conv1D, layers.Conv2D, layers.Conv3D)
@RULES.of("Conv", layers.DepthwiseConv1D, layers.DepthwiseConv2D)
def _convolution(op: str, call: KerasCall) -> list[LayerPart]:
    layer = call.operation
    _plain_only(layer)
    depthwise = isinstance(layer, layers.DepthwiseConv1D | layers.DepthwiseConv2D)
    parameters = _with_bias(
        {"weight": weight(layer.kernel, arrange=depthwise_weight if depthwise else out_in_kernel)}, layer
    )
    attributes = {**_kernel_window(call), "group": int(layer.kernel.shape[-2] if depthwise else layer.groups)}
    return _with_activation(call, LayerPart(op, attributes, parameters, channels_last(layer)))


@RULES.of("Conv", layers.SeparableConv1D, layers.SeparableConv2D)
def _separable(op: str, call: KerasCall) -> list[LayerPart]:
    layer = call.operation
    last, shape = channels_last(layer), call.outputs[0]
    channels, multiplier = map(int, layer.depthwise_kernel.shape[-2:])
    between = shape
    if shape is not None:
        deep = channels * multiplier
        between = (*shape[:-1], deep) if last else (shape[0], deep, *shape[2:])
    depthwise = LayerPart(
        op,
        {**_kernel_window(call), "group": channels},
        {"weight": weight(layer.depthwise_kernel, arrange=depthwise_weight)},
        last,
        "DepthwiseConv",
        shape=between,
    )
    ones = (1,) * len(layer.kernel_size)
    point = window(ones, ones, ones, "valid", None)
    parameters = _with_bias({"weight": weight(layer.pointwise_kernel, arrange=out_in_kernel)}, layer)
    return [
        depthwise,
        *_with_activation(call, LayerPart(op, {**point, "group": 1}, parameters, last, "PointwiseConv")),
    ]


@RULES.of("ConvTranspose", layers.Conv1DTranspose, layers.Conv2DTranspose, layers.Conv3DTranspose)
def _transposed(op: str, call: KerasCall) -> list[LayerPart]:
    """TensorFlow's is the gradient of the convolution that makes the input's sizes from the output's."""
    layer = call.operation
    last = channels_last(layer)
    parameters = _with_bias({"weight": weight(layer.kernel, arrange=out_in_kernel)}, layer)
    shapes = (call.shapes[0], call.outputs[0]) if call.resolved else (None, None)
    sizes = (_spatial(shapes[0], last=last), _spatial(shapes[1], last=last))
    attributes = transposed_window(layer.kernel_size, layer.strides, layer.dilation_rate, layer.padding, sizes)
    return _with_activation(call, LayerPart(op, attributes, parameters, last))


@RULES.of("MaxPool", layers.MaxPooling1D, layers.MaxPooling2D, layers.MaxPooling3D, keras.src.ops.nn.MaxPool)
@RULES.of(
    *("AveragePool", keras.src.ops.nn.AveragePool),
    *(layers.AveragePooling1D, layers.AveragePooling2D, layers.AveragePooling3D),
)
def _pooling(op: str, call: KerasCall) -> list[LayerPart]:
    layer = call.operation  # or a function, whose sizes may be one number for all axes
    axes = call.rank - 2
    kernel = _of_each_axis(layer.pool_size, axes)
    strides = kernel if layer.strides is None else _of_each_axis(layer.strides, axes)
    attributes = {**OPERATORS[op].attributes, **_window(call, kernel, strides, (1,) * axes)}
    return [LayerPart(op, attributes, channels_last=channels_last(layer))]


def _of_each_axis(value: int | Sequence[int], axes: int) -> tuple[int, ...]:
    return (int(value),) * axes if isinstance(value, int) else tuple(map(int, value))


@RULES.of("ReduceMax", layers.GlobalMaxPooling1D, layers.GlobalMaxPooling2D, layers.GlobalMaxPooling3D)
@RULES.of("ReduceMean", layers.GlobalAveragePooling1D, layers.GlobalAveragePooling2D, layers.GlobalAveragePooling3D)
def _global_pooling(op: str, call: KerasCall) -> list[LayerPart]:
    layer = call.operation
    if call.masked:
        raise ValueError("takes a mask")
    last = channels_last(layer)
    axes = tuple(range(1, call.rank - 1)) if last else tuple(range(2, call.rank))
    return [LayerPart(op, {"axes": axes, "keepdims": bool(layer.keepdims)}, channels_last=last)]


@RULES.of("MatMul", layers.Dense)
def _dense(op: str, call: KerasCall) -> list[LayerPart]:
    layer = call.operation
    _plain_only(layer)
    return _with_activation(call, _fully_connected(op, layer))


def _fully_connected(op: str, layer: Any) -> LayerPart:
    parameters = _with_bias({"weight": weight(layer.kernel)}, layer)
    return LayerPart(op, {"transpose_a": False, "transpose_b": False}, parameters, True)


@RULES.of("MatMul", layers.EinsumDense)
def _einsum_dense(op: str, call: KerasCall) -> list[LayerPart]:
    layer = call.operation
    _plain_only(layer)
    operands, _, result = layer.equation.replace(" ", "").partition("->")
    given, _, kernel = operands.partition(",")
    plain_bias = layer.bias is None or len(layer.bias.shape) == 1
    if plain_bias and len(kernel) == 2 and given.endswith(kernel[0]) and result == given[:-1] + kernel[1]:
        return _with_activation(call, _fully_connected(op, layer))
    parameters = _with_bias({"weight": weight(layer.kernel)}, layer)
    return _with_activation(call, LayerPart("EinsumDense", {"equation": layer.equation}, parameters, True))

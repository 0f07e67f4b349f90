"""Convolutions, poolings and fully connected layers of Keras."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import layers

from conrepair.graph.layer_graph import Array, Attribute, Parameter
from conrepair.networks.keras_activations import activation_parts
from conrepair.networks.keras_parts import KerasCall, Rule, channels_last, weight
from conrepair.networks.parts import LayerPart, out_in_kernel, same_pads

__all__ = ["RULES"]


def _spatial(shape: tuple[int, ...] | None, *, last: bool) -> tuple[int, ...] | None:
    return shape and (shape[1:-1] if last else shape[2:])


def _window(
    call: KerasCall, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int], padding: str
) -> dict[str, Attribute]:
    """The attributes of everything that slides over its input."""
    pads: tuple[int, ...] | None = (0,) * (2 * len(kernel))
    automatic = "NOTSET"
    sizes = _spatial(call.shapes[0], last=channels_last(call.operation)) if call.resolved else None
    if padding == "causal":
        pads = ((kernel[0] - 1) * dilations[0], 0)
    elif padding == "same":
        pads = same_pads(sizes, kernel, strides, dilations) if sizes else None
        automatic = "NOTSET" if sizes else "SAME_UPPER"
    return {
        "kernel_shape": tuple(map(int, kernel)),
        "strides": tuple(map(int, strides)),
        "pads": pads,
        "dilations": tuple(map(int, dilations)),
        "auto_pad": automatic,
    }


def _depthwise_kernel(kernel: Array) -> Array:
    """[*kernel, channels, multiplier] as [channels * multiplier, 1, *kernel]."""
    moved = np.moveaxis(kernel, (-2, -1), (0, 1))
    return moved.reshape(-1, 1, *kernel.shape[:-2])


def _with_bias(parameters: dict[str, Parameter], layer: Any) -> dict[str, Parameter]:
    return {**parameters, "bias": weight(layer.bias)} if layer.bias is not None else parameters


def _with_activation(call: KerasCall, part: LayerPart) -> list[LayerPart]:
    shape = call.outputs[0]
    rank = len(shape) if shape else None
    last = part.channels_last
    activation = activation_parts(call.operation.activation, rank, channels_last=last)
    return [
        LayerPart(part.op, part.attributes, part.parameters, last, part.native, part.reads, shape),
        *activation,
    ]


def _plain_only(layer: Any) -> None:
    if getattr(layer, "quantization_mode", None):
        raise ValueError("quantized by Keras")


def _convolution(call: KerasCall) -> list[LayerPart]:
    layer = call.operation
    _plain_only(layer)
    window = _window(call, layer.kernel_size, layer.strides, layer.dilation_rate, layer.padding)
    parameters = _with_bias({"weight": weight(layer.kernel, out_in_kernel)}, layer)
    return _with_activation(
        call, LayerPart("Conv", {**window, "group": int(layer.groups)}, parameters, channels_last(layer))
    )


def _depthwise(call: KerasCall) -> list[LayerPart]:
    layer = call.operation
    window = _window(call, layer.kernel_size, layer.strides, layer.dilation_rate, layer.padding)
    parameters = _with_bias({"weight": weight(layer.kernel, _depthwise_kernel)}, layer)
    group = int(layer.kernel.shape[-2])
    return _with_activation(call, LayerPart("Conv", {**window, "group": group}, parameters, channels_last(layer)))


def _separable(call: KerasCall) -> list[LayerPart]:
    layer = call.operation
    last, shape = channels_last(layer), call.outputs[0]
    window = _window(call, layer.kernel_size, layer.strides, layer.dilation_rate, layer.padding)
    channels, multiplier = map(int, layer.depthwise_kernel.shape[-2:])
    between = shape
    if shape is not None:
        deep = channels * multiplier
        between = (*shape[:-1], deep) if last else (shape[0], deep, *shape[2:])
    depthwise = LayerPart(
        "Conv",
        {**window, "group": channels},
        {"weight": weight(layer.depthwise_kernel, _depthwise_kernel)},
        last,
        "DepthwiseConv",
        shape=between,
    )
    ones = (1,) * len(layer.kernel_size)
    point = _window(call, ones, ones, ones, "valid")
    parameters = _with_bias({"weight": weight(layer.pointwise_kernel, out_in_kernel)}, layer)
    return [
        depthwise,
        *_with_activation(call, LayerPart("Conv", {**point, "group": 1}, parameters, last, "PointwiseConv")),
    ]


def _transposed(call: KerasCall) -> list[LayerPart]:
    """TensorFlow's is the gradient of the convolution that makes the input's sizes from the output's."""
    layer = call.operation
    last = channels_last(layer)
    parameters = _with_bias({"weight": weight(layer.kernel, out_in_kernel)}, layer)
    before, after = _spatial(call.shapes[0], last=last), _spatial(call.outputs[0], last=last)
    if before is None or after is None or not call.resolved:
        window = _window(call, layer.kernel_size, layer.strides, layer.dilation_rate, layer.padding)
        return _with_activation(
            call, LayerPart("ConvTranspose", {**window, "group": 1, "output_padding": None}, parameters, last)
        )
    window = _window(call, layer.kernel_size, layer.strides, layer.dilation_rate, "valid")
    if layer.padding == "same":
        window["pads"] = same_pads(after, layer.kernel_size, layer.strides, layer.dilation_rate)
    pads, count = window["pads"], len(before)
    assert isinstance(pads, tuple)  # noqa: S101 "valid" and "same" of known sizes give numbers
    covered = [
        (size - 1) * stride + (width - 1) * dilation + 1
        for size, stride, width, dilation in zip(
            before, layer.strides, layer.kernel_size, layer.dilation_rate, strict=True
        )
    ]
    extra = tuple(
        size - (full - int(pads[axis]) - int(pads[axis + count]))
        for axis, (size, full) in enumerate(zip(after, covered, strict=True))
    )
    return _with_activation(
        call,
        LayerPart("ConvTranspose", {**window, "group": 1, "output_padding": extra}, parameters, last),
    )


def _pooling(call: KerasCall) -> list[LayerPart]:
    layer = call.operation  # or a function, whose sizes may be one number for all axes
    axes = call.rank - 2
    kernel = _of_each_axis(layer.pool_size, axes)
    strides = kernel if layer.strides is None else _of_each_axis(layer.strides, axes)
    attributes = _window(call, kernel, strides, (1,) * axes, layer.padding) | {"ceil_mode": False}
    last = channels_last(layer)
    if type(layer).__name__.startswith("Max"):
        return [LayerPart("MaxPool", attributes, channels_last=last)]
    return [LayerPart("AveragePool", attributes | {"count_include_pad": False}, channels_last=last)]


def _of_each_axis(value: int | Sequence[int], axes: int) -> tuple[int, ...]:
    return (int(value),) * axes if isinstance(value, int) else tuple(map(int, value))


def _global_pooling(call: KerasCall) -> list[LayerPart]:
    layer = call.operation
    if call.masked:
        raise ValueError("takes a mask")
    last = channels_last(layer)
    axes = tuple(range(1, call.rank - 1)) if last else tuple(range(2, call.rank))
    op = "ReduceMax" if "Max" in type(layer).__name__ else "ReduceMean"
    return [LayerPart(op, {"axes": axes, "keepdims": bool(layer.keepdims)}, channels_last=last)]


def _dense(call: KerasCall) -> list[LayerPart]:
    layer = call.operation
    _plain_only(layer)
    return _with_activation(call, _fully_connected(layer))


def _fully_connected(layer: Any) -> LayerPart:
    parameters = _with_bias({"weight": weight(layer.kernel)}, layer)
    return LayerPart("MatMul", {"transpose_a": False, "transpose_b": False}, parameters, True)


def _einsum_dense(call: KerasCall) -> list[LayerPart]:
    layer = call.operation
    _plain_only(layer)
    operands, _, result = layer.equation.replace(" ", "").partition("->")
    given, _, kernel = operands.partition(",")
    plain_bias = layer.bias is None or len(layer.bias.shape) == 1
    if plain_bias and len(kernel) == 2 and given.endswith(kernel[0]) and result == given[:-1] + kernel[1]:
        return _with_activation(call, _fully_connected(layer))
    parameters = _with_bias({"weight": weight(layer.kernel)}, layer)
    return _with_activation(call, LayerPart("EinsumDense", {"equation": layer.equation}, parameters, True))


RULES: dict[type, Rule] = {
    **dict.fromkeys((layers.Conv1D, layers.Conv2D, layers.Conv3D), _convolution),
    **dict.fromkeys((layers.Conv1DTranspose, layers.Conv2DTranspose, layers.Conv3DTranspose), _transposed),
    **dict.fromkeys((layers.DepthwiseConv1D, layers.DepthwiseConv2D), _depthwise),
    **dict.fromkeys((layers.SeparableConv1D, layers.SeparableConv2D), _separable),
    **dict.fromkeys((layers.MaxPooling1D, layers.MaxPooling2D, layers.MaxPooling3D), _pooling),
    **dict.fromkeys((layers.AveragePooling1D, layers.AveragePooling2D, layers.AveragePooling3D), _pooling),
    **dict.fromkeys(
        (layers.GlobalMaxPooling1D, layers.GlobalMaxPooling2D, layers.GlobalMaxPooling3D), _global_pooling
    ),
    **dict.fromkeys(
        (layers.GlobalAveragePooling1D, layers.GlobalAveragePooling2D, layers.GlobalAveragePooling3D), _global_pooling
    ),
    **dict.fromkeys((keras.src.ops.nn.MaxPool, keras.src.ops.nn.AveragePool), _pooling),
    layers.Dense: _dense,
    layers.EinsumDense: _einsum_dense,
}

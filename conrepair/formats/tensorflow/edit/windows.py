"""Convolutions, poolings and normalizations as functions of TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from conrepair.formats.editing.lowering_windows import POOLS, is_dilated, window_of
from conrepair.formats.editing.operation import NotEditableError, Operation
from conrepair.formats.networks.parts import depthwise_kernel, in_out_kernel, same_pads

_LINE, _PICTURE, _VOLUME = 3, 4, 5  # axes, with batch and channels


def _padding(operation: Operation, sizes: Sequence[int | None], pads: Sequence[int]) -> Any:
    """What TensorFlow calls the pads: a word where there's one, else the pads of all axes."""
    if not any(pads):
        return "VALID"
    known = [size for size in sizes if size is not None]
    if len(known) == len(sizes):
        kernel = _kernel(operation)
        steps, spread = window_of(operation, "strides", 1), window_of(operation, "dilations", 1)
        if tuple(pads) == same_pads(known, kernel, steps, spread):
            return "SAME"
    return [[0, 0], *np.reshape(pads, (2, -1)).T.tolist(), [0, 0]]


def _kernel(operation: Operation) -> tuple[int, ...]:
    weight = operation.parameters.get("weight")
    return tuple(weight.shape[2:]) if weight is not None else window_of(operation, "kernel_shape", 1)


def _checked(operation: Operation, tensor: Any) -> None:
    if tensor.shape.rank not in {_LINE, _PICTURE, _VOLUME}:
        raise NotEditableError(f"TensorFlow's {operation.operator} takes lines, pictures and volumes")
    if operation.attributes.get("auto_pad") not in {None, "NOTSET"} or operation.attributes.get("ceil_mode"):
        raise NotEditableError(f"the pads of {operation.operator} aren't known")


def _as_picture(operation: Operation) -> Operation:
    """The same along the second of two axes; the first has one place."""
    changed: dict[str, Any] = dict(operation.attributes)
    for name, usual in (("strides", 1), ("dilations", 1), ("kernel_shape", 1)):
        if isinstance(changed.get(name), tuple):
            changed[name] = (usual, *changed[name])
    if isinstance(changed.get("pads"), tuple):
        begin, end = changed["pads"]
        changed["pads"] = (0, begin, 0, end)
    weight = operation.parameters.get("weight")
    numbers = operation.parameters if weight is None else {**operation.parameters, "weight": weight[:, :, None]}
    return Operation(operation.operator, operation.inputs, changed, numbers, operation.channels_last)


def _any_rank(make: Callable[[Operation, Any], Any]) -> Callable[[Operation, Sequence[Any]], Any]:
    """TensorFlow has windows for pictures; lines become some of one row."""

    def made(operation: Operation, operands: Sequence[Any]) -> Any:
        (tensor,) = operands
        _checked(operation, tensor)
        if tensor.shape.rank == _LINE:
            return tf.squeeze(make(_as_picture(operation), tf.expand_dims(tensor, 1)), 1)
        return make(operation, tensor)

    return made


def _convolution(operation: Operation, tensor: Any) -> Any:
    weight = operation.parameters["weight"]
    group = operation.integer("group", 1)
    strides, dilations = window_of(operation, "strides", 1), window_of(operation, "dilations", 1)
    padding = _padding(operation, tensor.shape.as_list()[1:-1], window_of(operation, "pads", 0))
    depthwise = group > 1 and group == tensor.shape[-1] and len(set(strides)) == 1 and _either(strides, dilations)
    if not isinstance(padding, str) and (depthwise or tensor.shape.rank == _VOLUME):
        # Conv3D has none, and TensorFlow 2.21 dies of a DepthwiseConv2dNative with some and a bias behind it.
        tensor, padding = tf.pad(tensor, padding), "VALID"
    kernel = tf.constant(depthwise_kernel(weight, group) if depthwise else in_out_kernel(weight), tensor.dtype)
    if tensor.shape.rank == _VOLUME:
        if group > 1:
            raise NotEditableError("TensorFlow's Conv3D has no groups")
        result = tf.nn.conv3d(tensor, kernel, [1, *strides, 1], padding, dilations=[1, *dilations, 1])
    elif depthwise:
        result = tf.nn.depthwise_conv2d(tensor, kernel, [1, *strides, 1], padding, dilations=dilations)
    else:
        result = tf.nn.conv2d(tensor, kernel, strides, padding, dilations=dilations)
    bias = operation.parameters.get("bias")
    return result if bias is None else tf.nn.bias_add(result, tf.constant(bias, tensor.dtype))


def _either(strides: Sequence[int], dilations: Sequence[int]) -> bool:
    """TensorFlow's depthwise convolution has steps or dilations, not both."""
    return set(strides) == {1} or set(dilations) == {1}


def _transposed(operation: Operation, tensor: Any) -> Any:
    """As the gradient of a convolution, whose input has the sizes that come out."""
    weight = operation.parameters["weight"]
    sizes = tensor.shape.as_list()[1:-1]
    if tensor.shape.rank != _PICTURE or operation.integer("group", 1) > 1 or None in sizes:
        raise NotEditableError("TensorFlow's transposed convolution takes pictures of known sizes, in one group")
    strides, dilations = window_of(operation, "strides", 1), window_of(operation, "dilations", 1)
    pads, extra = window_of(operation, "pads", 0), window_of(operation, "output_padding", 0)
    after = [
        (size - 1) * strides[axis] + (weight.shape[2 + axis] - 1) * dilations[axis] + 1
        - pads[axis] - pads[len(sizes) + axis] + (extra[axis] if axis < len(sizes) else 0)
        for axis, size in enumerate(sizes)
    ]  # fmt: skip
    kernel = tf.constant(in_out_kernel(weight), tensor.dtype)
    pairs = [0, 0, *(pads[place] for axis in range(len(sizes)) for place in (axis, len(sizes) + axis)), 0, 0]
    result = tf.raw_ops.Conv2DBackpropInput(
        input_sizes=tf.stack([tf.shape(tensor)[0], *after, weight.shape[1]]),
        filter=kernel,
        out_backprop=tensor,
        strides=[1, *strides, 1],
        padding="EXPLICIT",
        explicit_paddings=pairs,
        dilations=[1, *dilations, 1],
    )
    bias = operation.parameters.get("bias")
    return result if bias is None else tf.nn.bias_add(result, tf.constant(bias, tensor.dtype))


def _pooled(operation: Operation, tensor: Any) -> Any:
    pads, kernel = window_of(operation, "pads", 0), _kernel(operation)
    padding = _padding(operation, tensor.shape.as_list()[1:-1], pads)
    largest = operation.operator == "MaxPool"
    words = isinstance(padding, str)
    counted = any(pads) and not largest and bool(operation.attributes.get("count_include_pad"))
    explicit = largest and tensor.shape.rank == _PICTURE
    if is_dilated(operation) or counted or not (words or explicit):
        raise NotEditableError(f"TensorFlow's {operation.operator} has no such pads, and no dilations")
    kinds = {True: (tf.nn.max_pool2d, tf.nn.max_pool3d), False: (tf.nn.avg_pool2d, tf.nn.avg_pool3d)}[largest]
    pool = kinds[tensor.shape.rank == _VOLUME]
    return pool(tensor, kernel, window_of(operation, "strides", 1), padding)


def _normalized(operation: Operation, operands: Sequence[Any]) -> Any:
    (tensor,) = operands
    numbers = operation.parameters
    if tensor.shape.rank != _PICTURE or operation.attributes.get("training_mode"):
        raise NotEditableError("TensorFlow's BatchNormalization takes pictures, statistics given")
    ones = np.ones_like(numbers["mean"])
    given = [numbers.get("scale", ones), numbers.get("bias", 0 * ones), numbers["mean"], numbers["variance"]]
    scale, offset, mean, variance = (tf.constant(array.astype(np.float32)) for array in given)
    epsilon = operation.real("epsilon", 1e-5)
    return tf.raw_ops.FusedBatchNormV3(
        x=tensor, scale=scale, offset=offset, mean=mean, variance=variance, epsilon=epsilon, is_training=False
    ).y


WINDOWS: Mapping[str, Callable[[Operation, Sequence[Any]], Any]] = {
    "Conv": _any_rank(_convolution),
    "ConvTranspose": _any_rank(_transposed),
    **dict.fromkeys(POOLS, _any_rank(_pooled)),
    "BatchNormalization": _normalized,
}
"""By the vocabulary's name."""

"""Normalizations: weights go into Keras's own layers."""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import keras
import numpy as np
from keras import ops

from conrepair_onnx_keras.importer.indexing import add
from conrepair_onnx_keras.importer.node import ImportedNode, operator


@operator(ignores=("consumed_inputs", "is_test", "momentum"), refuses="training mode")
def batch_normalization(node: ImportedNode) -> Any:
    if node.attribute("training_mode", 0) or node.outputs > 1:
        node.refuse("it's in training mode, where outputs depend on the rest of the batch")
    if not node.attribute("spatial", 1):
        node.refuse("spatial=0 normalizes each cell of its own")
    epsilon = node.attribute("epsilon", 1e-5)
    if node.rank(0) < 2 or not all(node.is_constant(index) for index in range(1, 5)):
        return _batch_normalization_of_tensors(node, epsilon)
    value = node.computed(node.value(0))
    y = node.layer(
        keras.layers.BatchNormalization,
        value.stored,
        weights=[node.constant(index) for index in range(1, 5)],
        axis=value.order[1],
        epsilon=epsilon,
        momentum=node.attribute("momentum", 0.9),
    )
    return node.output(y, value.order, value.shape)


def _batch_normalization_of_tensors(node: ImportedNode, epsilon: float) -> Any:
    shape = [-1, *[1] * (node.rank(0) - 2)] if node.rank(0) > 1 else [-1]
    scale, bias, mean, variance = (ops.reshape(node.tensor(index), shape) for index in range(1, 5))
    factor = ops.multiply(scale, ops.rsqrt(add(variance, epsilon)))
    return node.output(add(ops.multiply(ops.subtract(node.tensor(0), mean), factor), bias), None, node.shape(0))


@operator(ignores=("stash_type",))
def layer_normalization(node: ImportedNode) -> Any:
    axis, rank, epsilon = node.axis(-1), node.rank(0), node.attribute("epsilon", 1e-5)
    axes = list(range(axis, rank))
    x = node.tensor(0)
    constant = node.is_constant(1) and (not node.has(2) or node.is_constant(2))
    if node.outputs == 1 and constant and "float" in node.dtype(0):
        sizes = node.known_shape(0, axes)
        weights = [_broadcast(node.constant(index), sizes) for index in (1, 2) if node.has(index)]
        y = node.layer(
            keras.layers.LayerNormalization,
            x,
            weights=weights,
            axis=axes[0] if len(axes) == 1 else axes,
            epsilon=epsilon,
            center=node.has(2),
        )
        return node.output(y, None, node.shape(0))
    half = node.dtype(0) in {"float16", "bfloat16"} and node.attribute("stash_type", 1) == 1
    wide = ops.cast(x, "float32") if half else x
    mean = ops.mean(wide, axis=axes, keepdims=True)
    centred = ops.subtract(wide, mean)
    inverse = ops.rsqrt(add(ops.mean(ops.square(centred), axis=axes, keepdims=True), epsilon))
    y = ops.multiply(ops.cast(ops.multiply(centred, inverse), node.dtype(0)), node.tensor(1))
    y = add(y, node.tensor(2)) if node.has(2) else y
    return [node.output(y, None, node.shape(0)), mean, inverse][: node.outputs]


def _broadcast(weight: Any, sizes: Any) -> Any:
    """A weight of the axes that are normalized; those in front of them, of one element each, say nothing."""
    extra = max(np.ndim(weight) - len(sizes), 0)
    return np.broadcast_to(np.reshape(weight, np.shape(weight)[extra:]), sizes)


@operator("RMSNormalization", "SimplifiedLayerNormalization", ignores=("stash_type",))
def rms_normalization(node: ImportedNode) -> Any:
    if node.outputs > 1:
        node.refuse("only its first output is done")
    axis, rank, epsilon = node.axis(-1), node.rank(0), node.attribute("epsilon", 1e-5)
    x = node.tensor(0)
    if axis == rank - 1 and node.is_constant(1):
        scale = _broadcast(node.constant(1), node.known_shape(0, [axis]))
        y = node.layer(keras.layers.RMSNormalization, x, weights=[scale], axis=-1, epsilon=epsilon)
    else:
        mean = ops.mean(ops.square(x), axis=list(range(axis, rank)), keepdims=True)
        y = ops.multiply(ops.multiply(x, ops.rsqrt(add(mean, epsilon))), node.tensor(1))
    return node.output(y, None, node.shape(0))


@operator(ignores=("consumed_inputs",))
def instance_normalization(node: ImportedNode) -> Any:
    return _grouped(node, node.known_shape(0, [1])[0], 1)


@operator(ignores=("stash_type",))
def group_normalization(node: ImportedNode) -> Any:
    """Until opset 20 there was a weight for each group, since 21 for each channel."""
    groups, channels = node.attribute("num_groups"), node.known_shape(0, [1])[0]
    return _grouped(node, groups, channels // node.known_shape(1)[0])


def _grouped(node: ImportedNode, groups: int, repeats: int) -> Any:
    epsilon, x = node.attribute("epsilon", 1e-5), node.channels_last(0)
    if all(node.is_constant(index) for index in (1, 2)):
        weights = [np.repeat(node.constant(index), repeats) for index in (1, 2)]
        kind = keras.layers.GroupNormalization
        y = node.layer(kind, x, weights=weights, groups=groups, axis=-1, epsilon=epsilon)
        return node.from_channels_last(y, node.shape(0))
    sizes = node.known_shape(0)
    flat = ops.reshape(node.tensor(0), [-1, groups, math.prod(sizes[1:]) // groups])
    centred = ops.subtract(flat, ops.mean(flat, axis=-1, keepdims=True))
    variance = ops.mean(ops.square(centred), axis=-1, keepdims=True)
    y = ops.reshape(ops.multiply(centred, ops.rsqrt(add(variance, epsilon))), sizes)
    scale, bias = (
        ops.reshape(ops.repeat(node.tensor(index), repeats), [-1, *[1] * (len(sizes) - 2)]) for index in (1, 2)
    )
    return add(ops.multiply(y, scale), bias)


@operator()
def lrn(node: ImportedNode) -> Any:
    size, alpha = node.attribute("size"), node.attribute("alpha", 1e-4)
    beta, bias = node.attribute("beta", 0.75), node.attribute("bias", 1.0)
    x = node.channels_last(0)
    before, channels = (size - 1) // 2, node.known_shape(0, [1])[0]
    pads = [*[(0, 0)] * (node.rank(0) - 1), (before, size - 1 - before)]
    squares = ops.pad(ops.square(x), pads)
    total = reduce(add, [squares[..., offset : offset + channels] for offset in range(size)])
    y = ops.divide(x, ops.power(add(ops.multiply(total, alpha / size), bias), beta))
    return node.from_channels_last(y, node.shape(0))


@operator()
def lp_normalization(node: ImportedNode) -> Any:
    axis, x = node.axis(-1), node.tensor(0)
    if node.attribute("p", 2) == 1:
        norm = ops.sum(ops.absolute(x), axis=axis, keepdims=True)
    else:
        norm = ops.sqrt(ops.sum(ops.square(x), axis=axis, keepdims=True))
    empty = ops.equal(norm, 0)
    y = ops.where(empty, ops.zeros_like(x), ops.divide(x, ops.where(empty, ops.ones_like(norm), norm)))
    return node.output(y, None, node.shape(0))

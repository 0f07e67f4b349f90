"""Activations: one input, element by element or along one axis."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from keras import ops

from conrepair.importer.addition import add
from conrepair.importer.node import Node
from conrepair.importer.registry import operator
from conrepair.importer.values import Tensor

_SELU_ALPHA, _SELU_GAMMA = 1.67326319217681884765625, 1.05070102214813232421875


@operator("Relu", ignores=("consumed_inputs",))
def relu(node: Node) -> Any:
    return node.elementwise(ops.relu if "float" in node.dtype(0) else lambda x: ops.maximum(x, 0))


@operator("Sigmoid", "Softsign", "Softplus", "Tanh", "Erf")
def plain(node: Node) -> Any:
    return node.elementwise(getattr(ops, node.operator.lower()))


@operator("Elu")
def elu(node: Node) -> Any:
    return node.elementwise(lambda x: ops.elu(x, node.attribute("alpha", 1.0)))


@operator("Celu")
def celu(node: Node) -> Any:
    return node.elementwise(lambda x: ops.celu(x, node.attribute("alpha", 1.0)))


@operator("Selu")
def selu(node: Node) -> Any:
    alpha, gamma = node.attribute("alpha", _SELU_ALPHA), node.attribute("gamma", _SELU_GAMMA)
    return node.elementwise(lambda x: ops.multiply(ops.elu(x, alpha), gamma))


@operator("LeakyRelu")
def leaky_relu(node: Node) -> Any:
    return node.elementwise(lambda x: ops.leaky_relu(x, node.attribute("alpha", 0.01)))


@operator("ThresholdedRelu")
def thresholded_relu(node: Node) -> Any:
    return node.elementwise(lambda x: ops.threshold(x, node.attribute("alpha", 1.0), 0.0))


@operator("PRelu")
def prelu(node: Node) -> Any:
    def function(x: Any, slope: Any) -> Any:
        return ops.where(ops.less(x, 0), ops.multiply(x, slope), x)

    return node.elementwise(function)


@operator("HardSigmoid")
def hard_sigmoid(node: Node) -> Any:
    alpha, beta = node.attribute("alpha", 0.2), node.attribute("beta", 0.5)
    return node.elementwise(lambda x: ops.clip(add(ops.multiply(x, alpha), beta), 0.0, 1.0))


@operator("HardSwish")
def hard_swish(node: Node) -> Any:
    return node.elementwise(ops.hard_swish)


@operator("Mish")
def mish(node: Node) -> Any:
    return node.elementwise(lambda x: ops.multiply(x, ops.tanh(ops.softplus(x))))


@operator("Swish")
def swish(node: Node) -> Any:
    alpha = node.attribute("alpha", 1.0)
    return node.elementwise(lambda x: ops.multiply(x, ops.sigmoid(x if alpha == 1 else ops.multiply(x, alpha))))


@operator("Gelu")
def gelu(node: Node) -> Any:
    return node.elementwise(lambda x: ops.gelu(x, approximate=node.attribute("approximate", "none") == "tanh"))


@operator("Shrink")
def shrink(node: Node) -> Any:
    bias, threshold = node.attribute("bias", 0.0), node.attribute("lambd", 0.5)

    def function(x: Any) -> Any:
        below = ops.where(ops.less(x, -threshold), add(x, _number(bias, x)), ops.zeros_like(x))
        return ops.where(ops.greater(x, threshold), ops.subtract(x, _number(bias, x)), below)

    return node.elementwise(function)


@operator("Clip", constant=("min", "max"), ignores=("consumed_inputs",))
def clip(node: Node) -> Any:
    low = node.attribute("min", node.constant(1))
    high = node.attribute("max", node.constant(2))
    low = None if low is None or (np.isinf(low) and low < 0) else np.asarray(low).item()
    high = None if high is None or (np.isinf(high) and high > 0) else np.asarray(high).item()

    def function(x: Any) -> Any:
        if (low, high) == (0.0, 6.0) and "float" in str(x.dtype):
            return ops.relu6(x)
        x = x if low is None else ops.maximum(x, _number(low, x))
        return x if high is None else ops.minimum(x, _number(high, x))

    return node.elementwise(function, [0])


@operator("Softmax", "LogSoftmax", "Hardmax")
def softmax(node: Node) -> Any:
    value = node.value(0)
    assert isinstance(value, Tensor)  # noqa: S101 - constants don't reach rules
    if node.opset < 13:
        return _flattened_softmax(node)
    axis = node.axis(-1)
    if value.order[axis] == value.rank - 1:
        return node.output(_softmax(node, value.stored, -1), value.order, value.shape)
    return node.output(_softmax(node, node.tensor(0), axis), None, value.shape)


def _flattened_softmax(node: Node) -> Any:
    """Before opset 13, all axes from `axis` on were one."""
    axis, shape = node.axis(1), node.shape(0)
    tail = node.known_shape(0, range(axis, len(shape)))
    x = node.tensor(0)
    if sum(size != 1 for size in tail) <= 1:
        place = next((axis + index for index, size in enumerate(tail) if size != 1), len(shape) - 1)
        return node.output(_softmax(node, x, place), None, shape)
    flat = ops.reshape(x, [-1, math.prod(tail)])
    head = [-1 if x.shape[index] is None else x.shape[index] for index in range(axis)]
    if head.count(-1) > 1:
        node.refuse("the sizes in front of its axis must be known; fix them with --input")
    return node.output(ops.reshape(_softmax(node, flat, -1), [*head, *tail]), None, shape)


def _softmax(node: Node, x: Any, axis: int) -> Any:
    if node.operator == "Softmax":
        return ops.softmax(x, axis=axis)
    if node.operator == "LogSoftmax":
        return ops.log_softmax(x, axis=axis)
    size = x.shape[axis]
    if size is None:
        node.refuse("the size of its axis must be known; fix it with --input")
    # Keras names the axis behind all others by -1 only.
    place = -1 if axis == len(x.shape) - 1 else axis
    return ops.one_hot(ops.argmax(x, axis=axis), size, axis=place, dtype=x.dtype)


def _number(number: Any, x: Any) -> Any:
    """A Python number that doesn't change the dtype of what it's combined with."""
    return float(number) if "float" in str(x.dtype) else int(number)

"""Activations: one input, element by element or along one axis."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from keras import ops

from conrepair.ground.graph.operators import OPERATORS
from conrepair_onnx_keras.importer.indexing import add
from conrepair_onnx_keras.importer.node import ImportedNode, operator
from conrepair_onnx_keras.importer.operators.reduction import one_zero


@operator(ignores=("consumed_inputs",))
def relu(node: ImportedNode) -> Any:
    return node.elementwise(ops.relu if "float" in node.dtype(0) else lambda x: ops.maximum(x, 0))


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Elu": ops.elu,
    "Celu": ops.celu,
    "Gelu": lambda x, approximate: ops.gelu(x, approximate=approximate == "tanh"),
    "HardSigmoid": lambda x, alpha, beta: ops.clip(add(ops.multiply(x, alpha), beta), 0.0, 1.0),
    "LeakyRelu": ops.leaky_relu,
    "Selu": lambda x, alpha, gamma: ops.multiply(ops.elu(x, alpha), gamma),
    "ThresholdedRelu": lambda x, alpha: ops.threshold(x, alpha, 0.0),
}


@operator(*_FUNCTIONS)
@operator("Gelu", domain="conrepair")  # what `patterns` found
def function_of_attributes(node: ImportedNode) -> Any:
    """Keras's function, or one of those, of a tensor and the operator's attributes, in the vocabulary's order."""
    given = [node.attribute(name, usual) for name, usual in OPERATORS[node.operator].attributes.items()]
    return node.elementwise(lambda x: _FUNCTIONS[node.operator](x, *given))


@operator()
def prelu(node: ImportedNode) -> Any:
    def function(x: Any, slope: Any) -> Any:
        return ops.where(ops.less(x, 0), ops.multiply(x, slope), x)

    return node.elementwise(function)


@operator()
def shrink(node: ImportedNode) -> Any:
    """Of integers, too, thresholds and results are real numbers, which are cut to integers in the end."""
    bias, threshold, dtype = node.attribute("bias", 0.0), node.attribute("lambd", 0.5), node.dtype(0)

    def function(x: Any) -> Any:
        x = x if "float" in dtype else ops.cast(x, "float32")
        above = ops.where(ops.greater(x, threshold), ops.subtract(x, bias), ops.zeros_like(x))
        y = ops.where(ops.less(x, -threshold), add(x, bias), above)  # where both hold, ONNX asks this first
        return y if "float" in dtype else ops.cast(y, dtype)

    return node.elementwise(function)


@operator(ignores=("consumed_inputs",))
def clip(node: ImportedNode) -> Any:
    """Bounds that are known are numbers; others are tensors."""
    bounds = [node.attribute(name) for name in ("min", "max")]
    computed = [index for index in (1, 2) if node.has(index) and not node.is_constant(index)]
    for index in (1, 2):
        if node.is_constant(index):
            bounds[index - 1] = node.constant(index)
    low, high = (None if bound is None else np.asarray(bound).item() for bound in bounds)
    low = None if low == -math.inf else low
    high = None if high == math.inf else high

    def function(x: Any, *tensors: Any) -> Any:
        if (low, high) == (0.0, 6.0) and "float" in str(x.dtype):
            return ops.relu6(x)
        given = dict(zip(computed, tensors, strict=True))
        for index, apply, number in ((1, ops.maximum, low), (2, ops.minimum, high)):
            bound = given.get(index, None if number is None else _number(number, x))
            x = x if bound is None else apply(x, bound)
        return x

    return node.elementwise(function, [0, *computed])


@operator("Softmax", "LogSoftmax", "Hardmax")
def softmax(node: ImportedNode) -> Any:
    value = node.computed(node.value(0))
    if node.opset < 13:
        return _flattened_softmax(node)
    axis = node.axis(-1)
    if value.order[axis] == value.rank - 1:
        return node.output(_softmax(node, value.stored, -1), value.order, value.shape)
    return node.output(_softmax(node, node.tensor(0), axis), None, value.shape)


def _flattened_softmax(node: ImportedNode) -> Any:
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


def _softmax(node: ImportedNode, x: Any, axis: int) -> Any:
    if node.operator == "Softmax":
        return ops.softmax(x, axis=axis) if len(x.shape) < 6 else _written_out(x, axis)
    if node.operator == "LogSoftmax":
        return ops.log_softmax(x, axis=axis)
    size = x.shape[axis]
    if size is None:
        node.refuse("the size of its axis must be known; fix it with --input")
    # Keras names the axis behind all others by -1 only.
    place = -1 if axis == len(x.shape) - 1 else axis
    return ops.one_hot(ops.argmax(one_zero(x), axis=axis), size, axis=place, dtype=x.dtype)


def _written_out(x: Any, axis: int) -> Any:
    """Of more than five axes TensorFlow computes no softmax."""
    shares = ops.exp(ops.subtract(x, ops.max(x, axis=axis, keepdims=True)))
    return ops.divide(shares, ops.sum(shares, axis=axis, keepdims=True))


def _number(number: Any, x: Any) -> Any:
    """A Python number that doesn't change the dtype of what it's combined with."""
    return float(number) if "float" in str(x.dtype) else int(number)

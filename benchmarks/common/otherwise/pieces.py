"""Operators written by others that compute the same."""

from __future__ import annotations

import numpy as np

from benchmarks.common.otherwise.work import Change, Work, attribute

__all__ = ["CHANGES"]


def _relu(work: Work) -> int:
    """By Max, or by Clip."""
    places = work.chosen(work.nodes("Relu"))
    for node in places:
        zero = work.numbers(0)
        operator = "Max" if work.generator.random() < 0.5 else "Clip"
        work.replace(node, work.add(operator, node.input[0], zero))
    return len(places)


def _clip(work: Work) -> int:
    """By Min and Max."""
    places = work.chosen(
        node for node in work.nodes("Clip") if len(node.input) == 3 and all(node.input) and len(node.attribute) == 0
    )
    for node in places:
        work.replace(node, work.add("Max", work.add("Min", node.input[0], node.input[2]), node.input[1]))
    return len(places)


def _hard_swish(work: Work) -> int:
    places = work.chosen(work.nodes("HardSwish"))
    for node in places:
        shifted = work.add("Add", node.input[0], work.numbers(3))
        gate = work.add("Div", work.add("Clip", shifted, work.numbers(0), work.numbers(6)), work.numbers(6))
        work.replace(node, work.add("Mul", node.input[0], gate))
    return len(places)


def _hard_sigmoid(work: Work) -> int:
    places = work.chosen(work.nodes("HardSigmoid"))
    for node in places:
        alpha, beta = attribute(node, "alpha", 0.2), attribute(node, "beta", 0.5)
        line = work.add("Add", work.add("Mul", node.input[0], work.numbers(alpha)), work.numbers(beta))
        work.replace(node, work.add("Clip", line, work.numbers(0), work.numbers(1)))
    return len(places)


def _leaky_relu(work: Work) -> int:
    """By Max, or by PRelu."""
    places = work.chosen(node for node in work.nodes("LeakyRelu") if attribute(node, "alpha", 0.01) < 1)
    for node in places:
        slope = work.numbers(attribute(node, "alpha", 0.01))
        if work.generator.random() < 0.5:
            work.replace(node, work.add("PRelu", node.input[0], slope))
        else:
            work.replace(node, work.add("Max", node.input[0], work.add("Mul", node.input[0], slope)))
    return len(places)


def _sigmoid(work: Work) -> int:
    """By the hyperbolic tangent, or by the exponential function."""
    places = work.chosen(work.nodes("Sigmoid"))
    for node in places:
        if work.generator.random() < 0.5:
            half = work.add("Tanh", work.add("Mul", node.input[0], work.numbers(0.5)))
            work.replace(node, work.add("Mul", work.add("Add", half, work.numbers(1)), work.numbers(0.5)))
        else:
            falling = work.add("Exp", work.add("Neg", node.input[0]))
            work.replace(node, work.add("Reciprocal", work.add("Add", falling, work.numbers(1))))
    return len(places)


def _gelu(work: Work) -> int:
    places = work.chosen(work.nodes("Gelu"))
    for node in places:
        value = node.input[0]
        if attribute(node, "approximate", b"none") == b"tanh":
            cube = work.add("Mul", work.add("Mul", value, value), value)
            inner = work.add("Add", value, work.add("Mul", cube, work.numbers(0.044715)))
            bent = work.add("Tanh", work.add("Mul", inner, work.numbers(np.sqrt(2 / np.pi))))
        else:
            bent = work.add("Erf", work.add("Mul", value, work.numbers(np.sqrt(0.5))))
        more = work.add("Add", bent, work.numbers(1))
        work.replace(node, work.add("Mul", work.add("Mul", value, work.numbers(0.5)), more))
    return len(places)


def _softmax(work: Work) -> int:
    places = work.chosen(node for node in work.nodes("Softmax") if work.graph.opset >= 13)
    for node in places:
        axis = attribute(node, "axis", -1)
        less = work.add("Sub", node.input[0], work.add("ReduceMax", node.input[0], axes=[axis], keepdims=1))
        grown = work.add("Exp", less)
        work.replace(node, work.add("Div", grown, work.add("ReduceSum", grown, axes=[axis], keepdims=1)))
    return len(places)


def _layer_norm(work: Work) -> int:
    places = work.chosen(
        node
        for node in work.nodes("LayerNormalization")
        if attribute(node, "axis", -1) == -1 and len(node.input) == 3 and len(node.output) == 1
    )
    for node in places:
        value, weight, bias = node.input
        epsilon = attribute(node, "epsilon", 1e-5)
        centred = work.add("Sub", value, work.add("ReduceMean", value, axes=[-1], keepdims=1))
        mean = work.add("ReduceMean", work.add("Mul", centred, centred), axes=[-1], keepdims=1)
        root = work.add("Sqrt", work.add("Add", mean, work.numbers(epsilon)))
        normed = work.add("Mul", centred, work.add("Reciprocal", root))
        work.replace(node, work.add("Add", work.add("Mul", normed, weight), bias))
    return len(places)


def _batch_norm(work: Work) -> int:
    """By one product and one sum."""
    places = []
    for node in work.chosen(node for node in work.nodes("BatchNormalization") if len(node.output) == 1):
        numbers = [work.constant_of(node, place) for place in range(1, 5)]
        rank = work.rank(node.input[0])
        if any(item is None for item in numbers) or not rank:
            continue
        scale, bias, mean, variance = (np.asarray(item, np.float64) for item in numbers)
        factor = scale / np.sqrt(variance + attribute(node, "epsilon", 1e-5))
        shape = [-1, *[1] * (rank - 2)]
        product = work.add("Mul", node.input[0], work.numbers(factor.reshape(shape)))
        work.replace(node, work.add("Add", product, work.numbers((bias - mean * factor).reshape(shape))))
        places.append(node)
    return len(places)


def _global_pool(work: Work) -> int:
    """By ReduceMean."""
    places = work.chosen(node for node in work.nodes("GlobalAveragePool") if work.rank(node.input[0]) == 4)
    for node in places:
        work.replace(node, work.add("ReduceMean", node.input[0], axes=[2, 3], keepdims=1))
    return len(places)


def _mean(work: Work) -> int:
    """By a sum and a product; of known sizes."""
    places = []
    for node in work.chosen(work.nodes("ReduceMean")):
        listed = work.constant_of(node, 1)
        axes = attribute(node, "axes", None) if listed is None else [int(item) for item in listed]
        sizes = work.shapes.get(node.input[0])
        if axes is None or not sizes or any(sizes[axis] is None for axis in axes):
            continue
        count = np.prod([sizes[axis] for axis in axes])
        total = work.add("ReduceSum", node.input[0], axes=list(axes), keepdims=attribute(node, "keepdims", 1))
        work.replace(node, work.add("Mul", total, work.numbers(1 / count)))
        places.append(node)
    return len(places)


def _division(work: Work) -> int:
    """By a constant: the product with its reciprocal; a difference: the sum with the negative."""
    places = []
    for node in work.chosen(work.nodes("Div", "Sub")):
        numbers = work.constant_of(node, 1)
        if numbers is None or numbers.dtype != np.float32:
            continue
        other = 1 / numbers.astype(np.float64) if node.op_type == "Div" else -numbers
        operator = "Mul" if node.op_type == "Div" else "Add"
        work.replace(node, work.add(operator, node.input[0], work.numbers(other)))
        places.append(node)
    return len(places)


def _power(work: Work) -> int:
    """A square by a product, a root by a power."""
    places = []
    for node in work.chosen(work.nodes("Pow", "Sqrt")):
        exponent = work.constant_of(node, 1) if node.op_type == "Pow" else np.float32(0.5)
        if node.op_type == "Sqrt":
            work.replace(node, work.add("Pow", node.input[0], work.numbers(0.5)))
        elif exponent is not None and exponent.size == 1 and float(exponent.reshape(-1)[0]) == 2.0:
            work.replace(node, work.add("Mul", node.input[0], node.input[0]))
        else:
            continue
        places.append(node)
    return len(places)


CHANGES: dict[str, Change] = {
    "relu-by-max-or-clip": _relu,
    "clip-by-min-and-max": _clip,
    "hard-swish-in-pieces": _hard_swish,
    "hard-sigmoid-in-pieces": _hard_sigmoid,
    "leaky-relu-by-max-or-prelu": _leaky_relu,
    "sigmoid-by-tanh-or-exp": _sigmoid,
    "gelu-in-pieces": _gelu,
    "softmax-in-pieces": _softmax,
    "layer-norm-in-pieces": _layer_norm,
    "batch-norm-by-product-and-sum": _batch_norm,
    "global-pool-by-mean": _global_pool,
    "mean-by-sum": _mean,
    "division-by-product": _division,
    "squares-by-products": _power,
}

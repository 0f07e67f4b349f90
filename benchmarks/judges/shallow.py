"""Well-conditioned networks of every family of operators, some layers deep."""

from __future__ import annotations

import numpy as np

from benchmarks.common.plain_graph import INT64
from benchmarks.judges.network import COUNT, Draw, Maker, Network, Writer

__all__ = ["SHALLOW"]


def _dense(draw: Draw) -> Network:
    net = Writer(draw)
    x = net.add("Relu", net.dense(net.normal(12), 12, 24))
    x = net.add("Tanh", net.dense(x, 24, 16))
    return net.ended((net.add("Softmax", net.dense(x, 16, 6), axis=-1), (6,)))


def _activations(draw: Draw) -> Network:
    net = Writer(draw)
    x = net.normal(16)
    for operator in ("Elu", "LeakyRelu", "Sigmoid", "HardSigmoid", "Softplus", "Selu", "Softsign", "HardSwish"):
        x = net.add(operator, net.dense(x, 16, 16, spread=0.4))
    return net.ended((net.dense(x, 16, 5), (5,)))


def _convolutions(draw: Draw) -> Network:
    net = Writer(draw)
    x = net.conv(net.normal(3, 10, 10), 3, 8)
    statistics = [net.constant(draw.uniform(0.5, 1.5, 8)) for _ in range(4)]
    x = net.add("Relu", net.add("BatchNormalization", x, *statistics))
    x = net.add("MaxPool", net.conv(x, 8, 8, group=8), kernel_shape=[2, 2], strides=[2, 2])
    x = net.add("Clip", net.conv(x, 8, 12, pads=[2, 2, 2, 2], dilations=[2, 2]), net.constant(0.0), net.constant(6.0))
    x = net.add("Flatten", net.add("GlobalAveragePool", x))
    return net.ended((net.dense(x, 12, 5), (5,)))


def _upsampling(draw: Draw) -> Network:
    net = Writer(draw)
    kept = net.add("Relu", net.conv(net.normal(2, 8, 8), 2, 6))
    low = net.add("AveragePool", kept, kernel_shape=[2, 2], strides=[2, 2])
    up = net.add("ConvTranspose", low, net.weights(6, 6, 2, 2), strides=[2, 2])
    x = net.conv(net.add("Concat", kept, up, axis=1), 12, 4)
    return net.ended((net.add("Flatten", net.add("GlobalAveragePool", net.add("Sigmoid", x))), (4,)))


def _attention(draw: Draw) -> Network:
    net, width = Writer(draw), 8
    x = net.normal(6, width)
    query, key, value = (net.add("MatMul", x, net.weights(width, width)) for _ in range(3))
    scores = net.add("MatMul", query, net.add("Transpose", key, perm=[0, 2, 1]))
    shares = net.add("Softmax", net.add("Mul", scores, net.constant(width**-0.5)), axis=-1)
    x = net.add("Add", x, net.add("MatMul", net.add("MatMul", shares, value), net.weights(width, width)))
    x = net.add("ReduceMean", net.normalized(x, width), axes=[1], keepdims=0)
    return net.ended((net.dense(x, width, 5), (5,)))


def _gelu(draw: Draw) -> Network:
    net = Writer(draw)
    x = net.dense(net.normalized(net.normal(16), 16), 16, 16)
    gate = net.add("Add", net.add("Erf", net.add("Mul", x, net.constant(2**-0.5))), net.constant(1.0))
    x = net.add("Mul", net.add("Mul", x, gate), net.constant(0.5))
    return net.ended((net.dense(x, 16, 5), (5,)))


def _recurrent(draw: Draw) -> Network:
    net, hidden, given = Writer(draw), 6, 4
    x = net.add("Transpose", net.normal(5, given), perm=[1, 0, 2])
    weights = [net.weights(1, 4 * hidden, size, spread=0.4) for size in (given, hidden)]
    x = net.add("LSTM", x, *weights, net.weights(1, 8 * hidden, spread=0.1), hidden_size=hidden)
    x = net.add("Squeeze", x, axes=[1])
    weights = [net.weights(1, 3 * hidden, hidden, spread=0.4) for _ in range(2)]
    x = net.add("GRU", x, *weights, net.weights(1, 6 * hidden, spread=0.1), hidden_size=hidden)
    x = net.add("ReduceMean", net.add("Squeeze", x, axes=[1]), axes=[0], keepdims=0)
    return net.ended((net.dense(x, hidden, 4), (4,)))


def _reductions(draw: Draw) -> Network:
    net = Writer(draw)
    x = net.add("MatMul", net.normal(6, 8), net.weights(8, 8))
    parts = [net.add(name, x, axes=[1], keepdims=0) for name in ("ReduceMean", "ReduceMax", "ReduceL2", "ReduceSum")]
    return net.ended((net.dense(net.add("Concat", *parts, axis=1), 32, 5), (5,)))


def _moving(draw: Draw) -> Network:
    net = Writer(draw)
    x = net.add("Transpose", net.normal(4, 6), perm=[0, 2, 1])
    ends = [net.constant(np.array(value)) for value in ([1], [5], [1], [1])]
    x = net.add("Reshape", net.add("Slice", x, *ends), net.constant(np.array([-1, 16])))
    x = net.add("Gather", net.dense(x, 16, 12), net.constant(draw.permutation(12)), axis=1)
    left = net.add("Sub", x, net.weights(12))
    return net.ended((net.dense(net.add("Concat", x, net.add("Abs", left), axis=1), 24, 5), (5,)))


def _normalizations(draw: Draw) -> Network:
    net = Writer(draw)
    x = net.conv(net.normal(3, 8, 8), 3, 8)
    x = net.add("InstanceNormalization", x, net.constant(draw.uniform(0.7, 1.3, 8)), net.weights(8, spread=0.1))
    x = net.add("LRN", net.conv(net.add("Relu", x), 8, 8), size=3)
    x = net.add("ReduceMean", x, axes=[2, 3], keepdims=0)
    return net.ended((net.dense(x, 8, 5), (5,)))


def _embedding(draw: Draw) -> Network:
    net = Writer(draw)
    net.network.graph.inputs["words"] = INT64, ["batch", 5]
    net.network.feeds["words"] = draw.integers(0, 20, (COUNT, 5))
    x = net.add("Gather", net.weights(20, 8, spread=1.0), "words", axis=0)
    x = net.add("ReduceMean", net.normalized(x, 8), axes=[1], keepdims=0)
    return net.ended((net.add("LogSoftmax", net.dense(x, 8, 6), axis=-1), (6,)))


def _waves(draw: Draw) -> Network:
    net = Writer(draw)
    x = net.dense(net.normal(10), 10, 12)
    sides = net.add("Sin", x), net.add("Cos", x), net.add("Atan", x)
    total = net.add("Mul", net.add("Add", sides[0], sides[1]), net.add("Exp", sides[2]))
    positive = net.add("Sqrt", net.add("Add", net.add("Mul", total, total), net.constant(0.1)))
    return net.ended((net.dense(net.add("Log", positive), 12, 4), (4,)))


def _two_outputs(draw: Draw) -> Network:
    net = Writer(draw)
    left, right = net.normal(8, name="left"), net.normal(8, name="right")
    both = net.add("Concat", net.add("Tanh", net.dense(left, 8, 8)), net.add("Relu", net.dense(right, 8, 8)), axis=1)
    first, second = net.dense(both, 16, 5), net.add("Softmax", net.dense(both, 16, 4), axis=-1)
    return net.ended((first, (5,)), (second, (4,)))


SHALLOW: dict[str, Maker] = {
    "dense": _dense,
    "activations": _activations,
    "convolutions": _convolutions,
    "upsampling": _upsampling,
    "attention": _attention,
    "gelu": _gelu,
    "recurrent": _recurrent,
    "reductions": _reductions,
    "moving": _moving,
    "normalizations": _normalizations,
    "embedding": _embedding,
    "waves": _waves,
    "two-outputs": _two_outputs,
}
"""By name."""

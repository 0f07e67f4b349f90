"""Networks on whose inputs few digits are left, or whose numbers are at the ends of what functions hold."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.judges.network import COUNT, Draw, Maker, Network, Writer

__all__ = ["CONDITIONED"]

_WIDTH = 8


def _tail(operator: str, low: float, high: float, **attributes: object) -> Maker:
    """One function of inputs that are evenly spread over a range."""

    def make(draw: Draw) -> Network:
        net = Writer(draw)
        x = net.uniform(low, high, _WIDTH)
        return net.ended((net.add(operator, x, **attributes), (_WIDTH,)))

    return make


def _behind(low: float, high: float, write: Callable[[Writer, str], str]) -> Maker:
    """Some nodes on inputs that are evenly spread over a range, then a dense layer."""

    def make(draw: Draw) -> Network:
        net = Writer(draw)
        x = write(net, net.uniform(low, high, _WIDTH))
        return net.ended((net.dense(x, _WIDTH, 4), (4,)))

    return make


def _cancelling_sum(draw: Draw) -> Network:
    net = Writer(draw)
    half = draw.normal(0, 1000, (COUNT, 16))
    x = net.take("x", np.concatenate([half, draw.normal(0, 0.1, half.shape) - half], axis=1))
    return net.ended((net.add("ReduceSum", net.add("Mul", x, net.constant(1.1)), axes=[1], keepdims=1), (1,)))


def _cancelling_product(draw: Draw) -> Network:
    net = Writer(draw)
    half = draw.normal(0, 1, (16, 6))
    weights = net.constant(np.concatenate([half, draw.normal(0, 1e-4, half.shape) - half]))
    x = draw.normal(0, 30, (COUNT, 16))
    x = net.take("x", np.concatenate([x, x], axis=1))
    return net.ended((net.add("MatMul", x, weights), (6,)))


def _variance(mean: float, *, squares: bool) -> Maker:
    """A variance of numbers that are far from zero, by squares or by differences from their mean."""

    def make(draw: Draw) -> Network:
        net = Writer(draw)
        x = net.normal(16, mean=mean)
        middle = net.add("ReduceMean", x, axes=[1], keepdims=1)
        if squares:
            of_squares = net.add("ReduceMean", net.add("Mul", x, x), axes=[1], keepdims=1)
            found = net.add("Sub", of_squares, net.add("Mul", middle, middle))
        else:
            left = net.add("Sub", x, middle)
            found = net.add("ReduceMean", net.add("Mul", left, left), axes=[1], keepdims=1)
        return net.ended((found, (1,)))

    return make


def _normalization(operator: str, mean: float, spread: float) -> Maker:
    """A normalization of numbers that are far from zero."""

    def make(draw: Draw) -> Network:
        net = Writer(draw)
        if operator == "LayerNormalization":
            x = net.normalized(net.normal(16, mean=mean, spread=spread), 16)
        else:
            x = net.normal(4, 16, mean=mean, spread=spread)
            x = net.add(operator, x, net.constant(np.ones(4)), net.constant(np.zeros(4)))
            x = net.add("ReduceMax", x, axes=[1], keepdims=0)
        return net.ended((net.dense(x, 16, 4), (4,)))

    return make


def _softmax_tail(draw: Draw) -> Network:
    net = Writer(draw)
    return net.ended((net.add("Softmax", net.uniform(-60, 0, _WIDTH), axis=-1), (_WIDTH,)))


def _log_of_softmax(draw: Draw) -> Network:
    net = Writer(draw)
    x = net.add("Softmax", net.uniform(-12, 12, _WIDTH), axis=-1)
    return net.ended((net.add("Log", net.add("Sub", net.constant(1.0), x)), (_WIDTH,)))


def _logistic_map(steps: int) -> Maker:
    """A loop that doubles errors at every step."""

    def make(draw: Draw) -> Network:
        net = Writer(draw)
        x, one, rate = net.uniform(0.1, 0.9, _WIDTH), net.constant(1.0), net.constant(3.9)
        for _ in range(steps):
            x = net.add("Mul", net.add("Mul", rate, x), net.add("Sub", one, x))
        return net.ended((x, (_WIDTH,)))

    return make


def _steep_recurrence(draw: Draw) -> Network:
    net, hidden = Writer(draw), 8
    x = net.add("Transpose", net.normal(24, 4), perm=[1, 0, 2])
    x = net.add(
        "RNN",
        x,
        net.weights(1, hidden, 4, spread=1.0),
        net.weights(1, hidden, hidden, spread=1.2),
        hidden_size=hidden,
    )
    last = net.add("Gather", net.add("Squeeze", x, axes=[1]), net.constant(np.array(23)), axis=0)
    return net.ended((last, (hidden,)))


def _steps(draw: Draw) -> Network:
    net = Writer(draw)
    x = net.add("Floor", net.add("Mul", net.uniform(0, 40, _WIDTH), net.constant(0.1)))
    net.network.feeds["x"] = np.round(net.network.feeds["x"] / 10).astype(np.float32) * 10  # right on the steps
    return net.ended((net.dense(x, _WIDTH, 4), (4,)))


def _cosine(draw: Draw) -> Network:
    net = Writer(draw)
    x = net.normal(16, spread=1e-18)
    length = net.add("ReduceL2", x, axes=[1], keepdims=1)
    return net.ended((net.dense(net.add("Div", x, length), 16, 4), (4,)))


def _one_minus(operator: str, low: float, high: float) -> Maker:
    """What's left of one."""
    return _behind(low, high, lambda net, x: net.add("Sub", net.constant(1.0), net.add(operator, x)))


def _power(exponent: float, low: float, high: float) -> Maker:
    """A power, no layer behind it."""

    def make(draw: Draw) -> Network:
        net = Writer(draw)
        return net.ended((net.add("Pow", net.uniform(low, high, _WIDTH), net.constant(exponent)), (_WIDTH,)))

    return make


def _near(operator: str, place: float, distance: float) -> Maker:
    """A function next to its pole or its zero."""

    def make(draw: Draw) -> Network:
        net = Writer(draw)
        away = np.exp(draw.uniform(np.log(distance), np.log(1e3 * distance), (COUNT, _WIDTH)))
        x = net.add("Sub", net.take("x", away + 3.0), net.constant(3.0 - place))
        return net.ended((net.add(operator, x), (_WIDTH,)))

    return make


CONDITIONED: dict[str, Maker] = {
    "sigmoid-tail": _tail("Sigmoid", -40, -8),
    "sigmoid-far-tail": _tail("Sigmoid", -100, -60),
    "softmax-tail": _softmax_tail,
    "log-of-softmax": _log_of_softmax,
    "softplus-tail": _tail("Softplus", -40, -8),
    "tanh-near-zero": _tail("Tanh", -1e-4, 1e-4),
    "exp-high": _tail("Exp", 60, 88),
    "exp-low": _tail("Exp", -95, -40),
    "log-near-one": _near("Log", 1.0, 1e-5),
    "log-near-zero": _tail("Log", 1e-30, 1e-20),
    "log-one-plus": _behind(0, 1e-5, lambda net, x: net.add("Log", net.add("Add", x, net.constant(1.0)))),
    "power-high": _power(33.0, 0.2, 8.0),
    "power-of-near-one": _power(3000.0, 0.999, 1.001),
    "tan-at-pole": _tail("Tan", 1.57, 1.5715),
    "sin-of-large": _tail("Sin", 1e4, 1e6),
    "cos-of-large": _behind(1e4, 1e5, lambda net, x: net.add("Cos", x)),
    "reciprocal-near-zero": _near("Reciprocal", 0.0, 1e-5),
    "acos-near-one": _behind(0.99999, 1.0, lambda net, x: net.add("Acos", x)),
    "one-minus-tanh": _one_minus("Tanh", 3, 9),
    "one-minus-erf": _one_minus("Erf", 2, 4),
    "one-minus-sigmoid": _one_minus("Sigmoid", 8, 20),
    "cancelling-sum": _cancelling_sum,
    "cancelling-product": _cancelling_product,
    "variance-by-squares": _variance(300.0, squares=True),
    "variance-by-squares-far": _variance(1e4, squares=True),
    "variance-by-differences": _variance(3e4, squares=False),
    "layer-norm-of-large-mean": _normalization("LayerNormalization", 1e3, 1.0),
    "layer-norm-of-huge-mean": _normalization("LayerNormalization", 1e6, 1.0),
    "instance-norm-of-large-mean": _normalization("InstanceNormalization", 1e4, 1.0),
    "logistic-map": _logistic_map(14),
    "long-logistic-map": _logistic_map(60),
    "steep-recurrence": _steep_recurrence,
    "steps": _steps,
    "tiny-cosine": _cosine,
}
"""By name."""

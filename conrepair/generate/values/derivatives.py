"""How a loss on what a node makes depends on what it reads: true derivatives, and proxies where those say nothing.

Steps and kinks get the slope of what they round or cut (NNSmith's proxy derivatives): a search goes on through them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from conrepair.generate.graph import Node

__all__ = ["gradients"]

Array = np.ndarray[Any, Any]

_LEAK = 0.1
"""Slope of what is cut off."""

_ELEMENTWISE: Mapping[str, Callable[[Array, Array], Array]] = {
    "Abs": lambda x, y: np.sign(x) + (x == 0),
    "Acos": lambda x, y: -np.ones_like(x),
    "Asin": lambda x, y: np.ones_like(x),
    "Atan": lambda x, y: 1 / (1 + x * x) + _LEAK,
    "Ceil": lambda x, y: np.ones_like(x),
    "Clip": lambda x, y: np.where(x == y, 1.0, _LEAK),
    "Cos": lambda x, y: -np.sin(x),
    "Cosh": lambda x, y: np.sinh(np.clip(x, -20, 20)),
    "Elu": lambda x, y: np.where(x > 0, 1.0, _LEAK),
    "Erf": lambda x, y: np.exp(-np.minimum(x * x, 20)) + _LEAK,
    "Exp": lambda x, y: np.exp(np.clip(x, -20, 20)),
    "Floor": lambda x, y: np.ones_like(x),
    "LeakyRelu": lambda x, y: np.where(x > 0, 1.0, _LEAK),
    "Log": lambda x, y: 1 / np.maximum(np.abs(x), 1e-3),
    "Neg": lambda x, y: -np.ones_like(x),
    "Reciprocal": lambda x, y: -1 / np.maximum(x * x, 1e-3),
    "Relu": lambda x, y: np.where(x > 0, 1.0, _LEAK),
    "Round": lambda x, y: np.ones_like(x),
    "Sigmoid": lambda x, y: np.maximum(y * (1 - y), _LEAK / 10),
    "Sin": lambda x, y: np.cos(x),
    "Sinh": lambda x, y: np.cosh(np.clip(x, -20, 20)),
    "Softplus": lambda x, y: 1 / (1 + np.exp(-np.clip(x, -20, 20))),
    "Sqrt": lambda x, y: 0.5 / np.maximum(np.abs(y), 1e-2),
    "Tan": lambda x, y: np.ones_like(x),
    "Tanh": lambda x, y: np.maximum(1 - y * y, _LEAK / 10),
}
_LIKE_IDENTITY = frozenset(
    {"Asinh", "Atanh", "Acosh", "Celu", "Gelu", "HardSigmoid", "HardSwish", "Mish", "Selu", "Softsign", "Swish"}
    | {"ThresholdedRelu", "Shrink", "Identity", "Dropout", "Cast", "CumSum", "LpNormalization", "LRN"}
)
_RESHAPING = frozenset({"Flatten", "Reshape", "Squeeze", "Unsqueeze"})


def gradients(
    node: Node, inputs: Sequence[Array | None], outputs: Sequence[Array | None], wanted: Array
) -> dict[int, Array]:
    """The derivative of a loss in a node's inputs.

    Args:
        node: The node.
        inputs: What it reads; None for what is left out.
        outputs: What it makes.
        wanted: The loss's derivative in its first output, float64, of that one's shape.

    Returns:
        By place, float64 arrays of the inputs' shapes; nothing for operators of which nothing is known here.
    """
    first, made = inputs[0] if inputs else None, outputs[0]
    if first is None or made is None:
        return {}
    x = first.astype(np.float64)
    op = node.op
    if op in _ELEMENTWISE:
        return {0: wanted * _ELEMENTWISE[op](x, made.astype(np.float64))}
    if op in _LIKE_IDENTITY:
        return {0: wanted}
    if op in _RESHAPING:
        return {0: wanted.reshape(x.shape)}
    if op == "Transpose":
        order = node.attributes.get("perm") or tuple(reversed(range(x.ndim)))
        return {0: np.transpose(wanted, np.argsort(order))}
    if op in {"Sum", "Mean", "Max", "Min"}:
        return {place: _unbroadcast(wanted, item.shape) for place, item in enumerate(inputs) if item is not None}
    if op.startswith("Reduce"):
        return {0: np.broadcast_to(_kept(node, wanted, x), x.shape) / 1.0}
    second = inputs[1].astype(np.float64) if len(inputs) > 1 and inputs[1] is not None else None
    if second is None:
        return {}
    return {
        place: _unbroadcast(part, item.shape)
        for place, (part, item) in enumerate(zip(_of_two(op, x, second, made, wanted), (x, second), strict=False))
        if part is not None
    }


def _of_two(op: str, a: Array, b: Array, y: Array, wanted: Array) -> tuple[Array | None, ...]:
    match op:
        case "Add":
            return wanted, wanted
        case "Sub":
            return wanted, -wanted
        case "Mul":
            return wanted * b, wanted * a
        case "Div":
            safe = np.where(np.abs(b) < 1e-3, 1e-3, b)
            return wanted / safe, -wanted * a / (safe * safe)
        case "Pow":
            base = np.maximum(np.abs(a), 1e-3)
            return wanted * b * base ** np.clip(b - 1, -10, 10), wanted * np.log(base)
        case "PRelu":
            return np.where(a > 0, wanted, wanted * b), None
        case "MatMul" if a.ndim >= 2 and b.ndim >= 2:
            return np.matmul(wanted, np.swapaxes(b, -1, -2)), np.matmul(np.swapaxes(a, -1, -2), wanted)
    return ()


def _unbroadcast(gradient: Array, shape: tuple[int, ...]) -> Array:
    """Sum over what was broadcast."""
    extra = gradient.ndim - len(shape)
    if extra > 0:
        gradient = gradient.sum(axis=tuple(range(extra)))
    axes = tuple(axis for axis, size in enumerate(shape) if size == 1 and gradient.shape[axis] != 1)
    return gradient.sum(axis=axes, keepdims=True) if axes else gradient


def _kept(node: Node, wanted: Array, x: Array) -> Array:
    """A reduction's derivative with the reduced axes as ones."""
    if wanted.ndim == x.ndim:
        return wanted
    if wanted.ndim == 0:
        return wanted.reshape((1,) * x.ndim)
    shape, left = [], list(wanted.shape)
    for place, size in enumerate(x.shape):  # the sizes that are kept are x's, in order
        keep = left and left[0] == size and len(left) <= x.ndim - place
        shape.append(left.pop(0) if keep else 1)
    return wanted.reshape(shape) if not left else np.full((1,) * x.ndim, wanted.mean())

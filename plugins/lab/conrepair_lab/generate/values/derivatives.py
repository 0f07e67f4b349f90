"""How a loss on what a node makes depends on what it reads: true derivatives, and proxies where those say nothing.

Steps and kinks get the slope of what they round or cut (NNSmith's proxy derivatives): a search goes on through them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from conrepair.ground.operators.all_operators import OPERATORS
from conrepair.ground.operators.record import Operator
from conrepair_lab.generate.graph import Node

Array = np.ndarray[Any, Any]

_LEAST, _MOST = 0.1, 1e3
"""Slopes of functions that a search goes on with: of what is cut off, and near a pole."""

_LIKE_IDENTITY = frozenset({"Dropout", "CumSum", "LpNormalization", "LRN"})
_RESHAPING = frozenset({"Flatten", "Reshape", "Squeeze", "Unsqueeze"})
_OF_MANY = frozenset({"Sum", "Mean", "Max", "Min"})


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
    x, op, attributes = first.astype(np.float64), node.op, node.attributes
    second = inputs[1].astype(np.float64) if len(inputs) > 1 and inputs[1] is not None else None
    if op in _LIKE_IDENTITY:
        return {0: wanted}
    if op in _RESHAPING:
        return {0: wanted.reshape(x.shape)}
    if op == "Transpose":
        return {0: np.transpose(wanted, np.argsort(attributes.get("perm") or range(x.ndim)[::-1]))}
    if op in _OF_MANY:
        return {place: _unbroadcast(wanted, item.shape) for place, item in enumerate(inputs) if item is not None}
    if op.startswith("Reduce"):
        return {0: _spread(wanted, x, attributes.get("axes") if second is None else second)}
    if op == "Clip":
        return {0: wanted * np.where(x == made, 1.0, _LEAST)}
    record = OPERATORS.get(op)
    if record is not None and record.operands == 1:
        return {0: wanted * _slope(record, x, attributes)}
    if second is None:
        return {}
    parts: Sequence[Array] = ()
    if op == "MatMul" and min(x.ndim, second.ndim) > 1:
        parts = np.matmul(wanted, np.swapaxes(second, -1, -2)), np.matmul(np.swapaxes(x, -1, -2), wanted)
    elif record is not None and record.operands == 2 and callable(record.derivative):
        parts = [wanted * _finite(part) for part in record.derivative(x, second)]
    return {
        place: _unbroadcast(part, item.shape)
        for place, (part, item) in enumerate(zip(parts, (x, second), strict=False))
    }


def _slope(record: Operator, x: Array, attributes: Mapping[str, Any]) -> Array:
    """Of a function; steps have that of what they round."""
    if not callable(record.derivative):
        return np.ones_like(x)
    slope = _finite(record.derivative(x, **record.given(attributes)))
    return np.where(slope < 0, -1, 1) * np.maximum(np.abs(slope), _LEAST)


def _finite(slope: Any) -> Array:
    return np.clip(np.nan_to_num(np.asarray(slope, np.float64), nan=1.0), -_MOST, _MOST)


def _unbroadcast(gradient: Array, shape: tuple[int, ...]) -> Array:
    """Sum over what was broadcast."""
    extra = gradient.ndim - len(shape)
    if extra > 0:
        gradient = gradient.sum(axis=tuple(range(extra)))
    axes = tuple(axis for axis, size in enumerate(shape) if size == 1 and gradient.shape[axis] != 1)
    return gradient.sum(axis=axes, keepdims=True) if axes else gradient


def _spread(wanted: Array, x: Array, axes: Any) -> Array:
    """A reduction's derivative, of each element that was reduced."""
    if wanted.ndim < x.ndim:
        along = range(x.ndim) if axes is None or not np.size(axes) else np.ravel(axes)
        wanted = np.expand_dims(wanted, tuple(int(axis) for axis in along))
    return np.broadcast_to(wanted, x.shape)

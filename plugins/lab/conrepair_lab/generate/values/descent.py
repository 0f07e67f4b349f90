"""A step down what is wrong with a network's values: losses, their derivatives in the sources, and how far to go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from conrepair.ground.metrics.ulps import grid_of, is_real
from conrepair.ground.operators.all_operators import OPERATORS
from conrepair.ground.operators.record import Operator
from conrepair_lab.generate.graph import Draft, Node, Tensor

Array = np.ndarray[Any, Any]

_LEAST, _MOST_DERIVATIVES = 0.1, 1e3
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
    return np.clip(np.nan_to_num(np.asarray(slope, np.float64), nan=1.0), -_MOST_DERIVATIVES, _MOST_DERIVATIVES)


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


_RATE, _DECAYS, _SMALL = 0.15, (0.8, 0.95), 1e-9
"""Adam's step, the memory of its two moments, and what keeps it from dividing by nothing."""

_MARGIN = 0.05
"""So far inside of where an operator is finite its input should be, if that's as wide."""

_MOST = 1e6
"""What values and derivatives count as at most."""

_CALM = 1.0
"""What is larger than this is made smaller where a node overflows."""


@dataclass
class Descent:
    """Adam (Kingma and Ba, 2014) on the sources of a network.

    The loss of an operator of limited domain is how far its input is outside; where all are inside, that of the first
    node with a flaw is how large what it reads is. All losses are gone down at once: what helps one may hurt another.

    Attributes:
        draft: The network.
        moments: By source, both moments.
        steps: Taken so far.
    """

    draft: Draft
    moments: dict[str, tuple[Array, Array]] = field(default_factory=dict)
    steps: int = 0

    def step(self, flawed: Node, sources: dict[str, Array], computed: Mapping[str, Array]) -> float | None:
        """Move sources, in place.

        Args:
            flawed: The first node that made something that isn't finite.
            sources: By name.
            computed: By name, what nodes make of them.

        Returns:
            The losses' sum before; None if no source has a say in them.
        """
        constants = {name: item.array for name, item in self.draft.tensors.items() if item.array is not None}
        values: dict[str, Array] = {**constants, **sources, **computed}
        loss, pending = 0.0, self._outside(values)
        if pending:
            loss = sum(float(np.abs(part).sum()) for parts in pending.values() for part in parts.values())
        else:
            pending = {id(flawed): _large(flawed, values)}
        moved = self._moved(self._derivatives(pending, values), sources)
        return loss if moved else None

    def _outside(self, values: Mapping[str, Array]) -> dict[int, dict[int, Array]]:
        """By node and place, how far what operators of limited domain read is outside."""
        found: dict[int, dict[int, Array]] = {}
        for node in self.draft.nodes:
            for place, (low, high) in node.domains.items():
                read = _bounded(values[node.inputs[place]].astype(np.float64))
                margin = min(_MARGIN, (high - low) / 8)
                beyond = np.maximum(read - (high - margin), 0) - np.maximum(low + margin - read, 0)
                if beyond.any():
                    found.setdefault(id(node), {})[place] = np.sign(beyond) * np.clip(np.abs(beyond), 0.5, 10)
        return found

    def _derivatives(
        self, losses: Mapping[int, Mapping[int, Array]], values: Mapping[str, Array]
    ) -> dict[str, Array]:
        """By tensor, the derivative of the losses' sum."""
        pending: dict[str, Array] = {}
        for node in reversed(self.draft.nodes):
            for place, part in losses.get(id(node), {}).items():
                _add(pending, node.inputs[place], part)
            wanted = pending.get(node.outputs[0])
            if wanted is None or node.piece is not None:
                continue
            read, made = ([values.get(name) for name in names] for names in (node.inputs, node.outputs))
            with np.errstate(all="ignore"):
                parts = gradients(node, read, made, wanted)
            for place, part in parts.items():
                _add(pending, node.inputs[place], _bounded(part))
        return pending

    def _moved(self, derivatives: Mapping[str, Array], sources: dict[str, Array]) -> bool:
        self.steps += 1
        moved = False
        for name, tensor in self.draft.sources.items():
            if name not in derivatives or not is_real(sources[name]) or not np.any(derivatives[name]):
                continue
            moved = True
            first, second = self.moments.get(name, (0.0, 0.0))
            slow, fast = _DECAYS
            first = slow * first + (1 - slow) * derivatives[name]
            second = fast * second + (1 - fast) * derivatives[name] ** 2
            self.moments[name] = (first, second)
            mean, spread = first / (1 - slow**self.steps), second / (1 - fast**self.steps)
            sources[name] = _stepped(sources[name], _RATE * mean / (np.sqrt(spread) + _SMALL), tensor)
        return moved


def _large(node: Node, values: Mapping[str, Array]) -> dict[int, Array]:
    found: dict[int, Array] = {}
    for place, name in enumerate(node.inputs):
        read = values.get(name)
        if read is not None and is_real(read):
            wide = _bounded(read.astype(np.float64))
            found[place] = np.where(np.abs(wide) > _CALM, np.sign(wide), 0.1 * np.sign(wide))
    return found


def _bounded(array: Array) -> Array:
    return array if np.abs(array).max(initial=0) <= _MOST else np.clip(np.nan_to_num(array), -_MOST, _MOST)


def _add(pending: dict[str, Array], name: str, part: Array) -> None:
    pending[name] = pending[name] + part if name in pending else np.asarray(part)


def _stepped(value: Array, step: Array, tensor: Tensor) -> Array:
    wide = value.astype(np.float64)
    found = wide - step * np.maximum(1.0, np.abs(wide))
    if tensor.values is not None:
        found = np.clip(found, tensor.values.low, tensor.values.high)
    largest = grid_of(value.dtype).largest
    return np.asarray(np.clip(found, -largest, largest).astype(value.dtype))

"""Whether two nodes have the same weights, up to a factor per output channel."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from conrepair.ground.graph.layer_graph import Array, Node, Parameter

_WEIGHTS = {"Conv": 0, "ConvTranspose": 1, "MatMul": -1, "LSTM": 1, "GRU": 1, "RNN": 1, "Gather": -1}
_ROLES = ("weight", "W", "table")
_LOOPS = {"WHILE", "STABLEHLO_WHILE", "Loop", "Scan"}
RECURRENT = {"LSTM", "GRU", "RNN", *_LOOPS}
"""Recurrent layers, and the loops that they're written as."""
_QUANTILES, _DIGITS = 32, 5  # of a matrix's numbers in their order, which say whether others are the same ones
_SAMPLED = 2048
_SEED = 20261120

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float32]


def weight_of(node: Node) -> Parameter | None:
    """A node's weights, None when it has none; of a loop, the largest matrix that it holds."""
    if node.op in _LOOPS:
        return max(_matrices(node), key=lambda parameter: math.prod(parameter.shape), default=None)
    if node.op not in _WEIGHTS:
        return None
    return next((node.parameters[role] for role in _ROLES if role in node.parameters), None)


class Fingerprints:
    """Some numbers of the weights of nodes, read when they're asked for."""

    def __init__(self) -> None:
        self._known: dict[str, Vector] = {}
        self._orderless: dict[str, frozenset[bytes]] = {}

    def alike(self, ours: Sequence[Node], theirs: Sequence[Node], other: Fingerprints) -> Matrix:
        """Correlation of the weights of nodes, each with each; 0 where operators or shapes differ.

        A recurrent layer and a loop that stands for it have gates in orders of their own, matrices turned or joined:
        their weights are alike, or they aren't, by the numbers without their order.

        Args:
            ours: Nodes with weights.
            theirs: Of another network.
            other: That network's.
        """
        result = np.zeros((len(ours), len(theirs)))
        across = _by_kind(theirs)
        for kind, rows in _by_kind(ours).items():
            columns = across.get(kind)
            if columns is not None:
                left = np.stack([self._of(ours[row]) for row in rows])
                right = np.stack([other._of(theirs[column]) for column in columns])
                result[np.ix_(rows, columns)] = left @ right.T
        rows, columns = (
            [place for place, node in enumerate(side) if node.op in RECURRENT] for side in (ours, theirs)
        )
        for row, column in itertools.product(rows, columns):
            one, two = ours[row], theirs[column]
            if one.op != two.op or one.op in _LOOPS:
                result[row, column] = self.share(one, two, other)
        return result

    def share(self, one: Node, two: Node, other: Fingerprints) -> bool:
        """Whether a recurrent layer, or a loop, and one of another network have a matrix of the same numbers."""
        return not self._numbers_of(one).isdisjoint(other._numbers_of(two))

    def _numbers_of(self, node: Node) -> frozenset[bytes]:
        if node.name not in self._orderless:
            arrays = [parameter.numpy().astype(np.float64) for parameter in _matrices(node)]
            directions = [item for array in arrays for item in (array if array.ndim > 2 else [array])]
            self._orderless[node.name] = frozenset(map(_orderless, directions))
        return self._orderless[node.name]

    def _of(self, node: Node) -> Vector:
        if node.name not in self._known:
            parameter = weight_of(node)
            if parameter is None:
                raise ValueError(f"{node.name} has no weights")
            found = _fingerprint(parameter.numpy(), _WEIGHTS[node.op])
            self._known[node.name] = (found / (np.linalg.norm(found) or 1.0)).astype(np.float32)
        return self._known[node.name]


def _matrices(node: Node) -> list[Parameter]:
    """The weights of a recurrent layer for each direction, or of a loop."""
    return [
        parameter
        for parameter in node.parameters.values()
        if len(parameter.shape) >= 2
        and math.prod(parameter.shape) >= _QUANTILES
        and (parameter.bits or "float" in parameter.dtype)
    ]


def _orderless(matrix: Array) -> bytes:
    """What's the same for matrices of the same numbers, up to a factor, in whichever order."""
    numbers = np.sort(matrix, axis=None)
    chosen = numbers[np.linspace(0, numbers.size - 1, _QUANTILES).astype(np.int64)]
    found: Array = np.round(chosen / (np.abs(numbers).max() or 1.0), _DIGITS) + 0.0
    return bytes(str(numbers.size), "ascii") + found.tobytes()


def _by_kind(nodes: Sequence[Node]) -> dict[tuple[str, tuple[int, ...]], list[int]]:
    found: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    for place, node in enumerate(nodes):
        parameter = None if node.op in _LOOPS else weight_of(node)
        if parameter is not None:
            found.setdefault((node.op, parameter.shape), []).append(place)
    return found


@functools.lru_cache(maxsize=16)
def _drawn(size: int) -> npt.NDArray[np.int64]:
    return np.random.default_rng(_SEED).choice(size, _SAMPLED, replace=False)


def _fingerprint(weight: Array, axis: int) -> Array:
    """Sampled values, each divided by the largest of its output channel: blind to folded normalizations."""
    rows = np.moveaxis(weight, axis, 0).reshape(weight.shape[axis], -1).astype(np.float64)
    if rows.shape[1] == 1:
        rows = rows.reshape(1, -1)
    peak = np.take_along_axis(rows, np.abs(rows).argmax(1)[:, None], 1)
    flat = (rows / np.where(peak == 0, 1, peak)).reshape(-1)
    if flat.size > _SAMPLED:
        flat = flat[_drawn(flat.size)]
    return np.asarray(flat - flat.mean())

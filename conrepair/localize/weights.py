"""Whether two nodes have the same weights, up to a factor per output channel."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from conrepair.graph.layer_graph import Array, Node, Parameter

__all__ = ["Fingerprints", "weight_of"]

_WEIGHTS = {"Conv": 0, "ConvTranspose": 1, "MatMul": -1, "LSTM": 1, "GRU": 1, "RNN": 1, "Gather": -1}
_ROLES = ("weight", "W", "table")
_SAMPLED = 2048
_SEED = 20261120
_LEAST = 0.5  # of a correlation that says anything

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float32]


def weight_of(node: Node) -> Parameter | None:
    """A node's weights, None when it has none."""
    if node.op not in _WEIGHTS:
        return None
    return next((node.parameters[role] for role in _ROLES if role in node.parameters), None)


class Fingerprints:
    """Some numbers of the weights of nodes, read when they're asked for."""

    def __init__(self) -> None:
        self._known: dict[str, Vector] = {}

    def alike(self, ours: Sequence[Node], theirs: Sequence[Node], other: Fingerprints) -> Matrix:
        """Correlation of the weights of nodes, each with each; 0 where operators or shapes differ, or where it's low.

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
        return np.where(result > _LEAST, result, 0.0)

    def _of(self, node: Node) -> Vector:
        if node.name not in self._known:
            parameter = weight_of(node)
            if parameter is None:
                raise ValueError(f"{node.name} has no weights")
            found = _fingerprint(parameter.numpy(), _WEIGHTS[node.op])
            self._known[node.name] = (found / (np.linalg.norm(found) or 1.0)).astype(np.float32)
        return self._known[node.name]


def _by_kind(nodes: Sequence[Node]) -> dict[tuple[str, tuple[int, ...]], list[int]]:
    found: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    for place, node in enumerate(nodes):
        parameter = weight_of(node)
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

"""Operators that move numbers, make them others of their kind, or read sizes alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from conrepair.ground.data.tensor_spec import numpy_dtype
from conrepair.ground.operators.record import BY_CHANNEL, Array, Attribute, Function, Operator

_MOVED = "what is derived moves as numbers do"
_NOT_ONNX = "ONNX has no such operator"
_FAR = 1 << 20  # behind any axis' begin


def _move(
    value: Function | str, roles: Mapping[str, str], family: str = "", unbounded: str = "", /, **names: Attribute
) -> Operator:
    return Operator(value, _MOVED, roles, names, family, exact=True, unbounded=unbounded)


def _split(x: Array, *, axis: int, sizes: Sequence[int]) -> list[Array]:
    return np.split(x, np.cumsum(sizes)[:-1], axis)


def cuts(
    rank: int, *, starts: Sequence[int], ends: Sequence[int], axes: Sequence[int], steps: Sequence[int]
) -> tuple[slice, ...]:
    """What a Slice takes of each axis of a tensor."""
    found = [slice(None)] * rank
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        # Backwards to the first one has no end that can be counted.
        found[axis] = slice(start, None if step < 0 and end < -_FAR else end, step)
    return tuple(found)


def _slice(x: Array, **where: Sequence[int]) -> Array:
    return x[cuts(x.ndim, **where)]


def pad(x: Array, *, pads: Sequence[int] | Array, mode: str, value: float) -> Array:
    """Numbers around it; pads below zero take away."""
    around = np.reshape(pads, (2, -1)).T
    ends = zip(np.maximum(-around, 0), x.shape, strict=True)
    kept = x[tuple(slice(before, max(0, size - behind)) for (before, behind), size in ends)]
    more: dict[str, Any] = {"constant_values": value} if mode == "constant" else {}
    return np.asarray(np.pad(kept, np.maximum(around, 0), mode, **more))  # type: ignore[call-overload]


MOVES: Mapping[str, Operator] = {
    "Reshape": _move(lambda x, shape: x.reshape(shape), {}, "move", shape=None),
    "Transpose": _move(lambda x, perm=None: x.transpose(perm), {}, "move", perm=None),
    "Cast": Operator(
        lambda x, to: x.astype(numpy_dtype(to)), lambda x, to: np.ones_like(x), {}, {"to": None}, "move", 1
    ),
    "Expand": _move(np.broadcast_to, {"operand": "what is expanded to a computed shape"}, shape=None),
    "Concat": _move(lambda *pieces, axis: np.concatenate(pieces, axis), {"operand": "a constant operand"}, axis=None),
    "Stack": _move(lambda *pieces, axis: np.stack(pieces, axis), {}, "", _NOT_ONNX, axis=None),
    "Split": _move(_split, {}, axis=None, sizes=None),
    "Slice": _move(_slice, {}, starts=None, ends=None, axes=None, steps=None),
    "Tile": _move(lambda x, repeats: np.tile(x, repeats), {}, repeats=None),
    "Pad": _move(pad, {}, pads=None, mode="constant", value=0.0),
    "Gather": _move(
        lambda table, indices, axis: np.take(table, indices.astype(int), axis),
        dict.fromkeys(("table", "indices"), "as in the file"),
        axis=0,
    ),
    "Where": Operator(
        np.where, _MOVED, dict.fromkeys(("condition", "x", "y"), "as in the file"), operands=3, exact=True
    ),
    "Shape": _move(lambda x: np.array(x.shape), {}),
    "DepthToSpace": _move(BY_CHANNEL, {}, blocksize=None, mode="DCR"),
    "SpaceToDepth": _move(BY_CHANNEL, {}, blocksize=None),
    "SpaceToBatch": _move(BY_CHANNEL, {}, "", _NOT_ONNX, block=None, pads=None),
    "BatchToSpace": _move(BY_CHANNEL, {}, "", _NOT_ONNX, block=None, crops=None),
}
"""By name."""

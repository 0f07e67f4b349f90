"""Simpler numbers in weights and inputs: zero, one, one for all, whole ones, fewer digits."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping

import numpy as np
from onnx import numpy_helper

from conrepair.ground.metrics.ulps import is_number, is_real
from conrepair_lab.cases.case import Array
from conrepair_lab.cases.draft import Change, Draft, Level

_BLOCKS = 16  # of an array, each of which may become simpler by itself

Simpler = Callable[[Array], Array]


def rounded(digits: int) -> Simpler:
    """Real numbers of fewer binary digits.

    Args:
        digits: That are left.
    """

    def simpler(array: Array) -> Array:
        if not is_real(array):
            return array
        with np.errstate(all="ignore"):
            part, exponent = np.frexp(array.astype(np.float64))
            near = np.ldexp(np.rint(part * 2**digits) / 2**digits, exponent)
            return np.where(np.isfinite(array), near, array).astype(array.dtype)

    return simpler


SIMPLER: tuple[Simpler, ...] = (
    np.zeros_like,
    np.ones_like,
    lambda array: np.full_like(array, array.flat[0]) if array.size and is_real(array) else array,
    lambda array: np.sign(array) if array.dtype.kind == "i" or is_real(array) else array,
    lambda array: np.rint(array) if is_real(array) else array,
    rounded(1),
    rounded(3),
    rounded(8),
)
"""The boldest first; whole numbers may be sizes, which never grow."""


def _levels(
    arrays: Callable[[Draft], Mapping[str, Array]], put: Callable[[Draft, str, Array], None]
) -> tuple[Level, ...]:
    """Whole arrays, then blocks of them, in all ways that are simpler.

    Args:
        arrays: Those of a draft.
        put: Puts one in the place of another.
    """
    ways = itertools.product((1, _BLOCKS), SIMPLER)
    return tuple(functools.partial(_level, arrays, put, blocks, simpler) for blocks, simpler in ways)


def _level(
    arrays: Callable[[Draft], Mapping[str, Array]],
    put: Callable[[Draft, str, Array], None],
    blocks: int,
    simpler: Simpler,
    draft: Draft,
) -> list[Change]:
    def change(draft: Draft, name: str, where: slice) -> None:
        put(draft, name, _changed(arrays(draft)[name], where, simpler))

    found: list[Change] = []
    for name, array in arrays(draft).items():
        if not is_number(array):
            continue
        bounds = sorted({array.size * place // blocks for place in range(blocks + 1)})
        for where in itertools.starmap(slice, itertools.pairwise(bounds)):
            if _changed(array, where, simpler).tobytes() != array.tobytes():
                found.append(functools.partial(change, name=name, where=where))  # noqa: PERF401 (reads better)
    return found


def _changed(array: Array, where: slice, simpler: Simpler) -> Array:
    flat = array.flatten()
    with np.errstate(all="ignore"):
        flat[where] = simpler(flat[where])
    return flat.reshape(array.shape)


def weights(draft: Draft) -> dict[str, Array]:
    """Arrays by name."""
    return {item.name: numpy_helper.to_array(item) for item in draft.model.graph.initializer}


def put_weight(draft: Draft, name: str, array: Array) -> None:
    """Put another array in the place of one.

    Args:
        draft: Changed in place.
        name: Of a weight.
        array: In its type.
    """
    item = next(item for item in draft.model.graph.initializer if item.name == name)
    item.CopyFrom(numpy_helper.from_array(array, name))


WEIGHTS = _levels(weights, put_weight)


def _put(draft: Draft, name: str, array: Array) -> None:
    draft.inputs[name] = array


VALUES = _levels(lambda draft: draft.inputs, _put)

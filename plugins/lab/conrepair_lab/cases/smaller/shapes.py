"""Shorter axes of inputs and weights, and fewer, and simpler numbers in them.

Axes that may have to be equal are changed together, then each by itself. Numbers become zero, one, one for all, whole
ones, or get fewer digits.
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from onnx import helper, numpy_helper

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


_Window = Callable[[int], range]
"""What is kept of an axis of a size."""


@dataclass(frozen=True)
class _Axis:
    name: str
    place: int
    size: int


def _axes(draft: Draft) -> Iterator[_Axis]:
    for name, array in (draft.inputs | weights(draft)).items():
        yield from (_Axis(name, place, size) for place, size in enumerate(array.shape))


def _together(same: Callable[[_Axis], Hashable], kept: _Window) -> Level:
    """Axes that are the same in some way become shorter together, and with them weights that say their size."""

    def level(draft: Draft) -> list[Change]:
        groups = defaultdict(list)
        for axis in _axes(draft):
            if len(kept(axis.size)) < axis.size:
                groups[same(axis)].append(axis)
        ordered = sorted(groups.values(), key=lambda group: -group[0].size)
        return [functools.partial(_shorten, group=group, kept=kept) for group in ordered]

    return level


def _shorten(draft: Draft, group: list[_Axis], kept: _Window) -> None:
    if len(group) > 1:
        said = {axis.size for axis in group}
        for name, array in weights(draft).items():
            if array.dtype == np.int64 and array.ndim <= 1 and not said.isdisjoint(array.flat):
                sizes = [len(kept(size)) if size in said else size for size in array.flatten().tolist()]
                put_weight(draft, name, np.array(sizes, np.int64).reshape(array.shape))
    known = weights(draft)
    for axis in group:
        if axis.name in draft.inputs:
            draft.inputs[axis.name] = _cut(draft.inputs[axis.name], axis, kept)
        else:
            known[axis.name] = _cut(known[axis.name], axis, kept)
            put_weight(draft, axis.name, known[axis.name])
    _declare(draft)


def _cut(array: Array, axis: _Axis, kept: _Window) -> Array:
    return np.ascontiguousarray(array.take(kept(axis.size), axis.place))


def _flatter(draft: Draft, most: int) -> list[Change]:
    """First axes of size one, so many of them."""
    arrays = draft.inputs | weights(draft)
    return [functools.partial(_drop, name=name, most=most) for name, it in arrays.items() if it.shape[:1] == (1,)]


def _drop(draft: Draft, name: str, most: int) -> None:
    array = (draft.inputs | weights(draft))[name]
    ones = itertools.takewhile(lambda size: size == 1, array.shape[:most])
    flat = array.reshape(array.shape[sum(ones) :])
    if name in draft.inputs:
        draft.inputs[name] = flat
    else:
        put_weight(draft, name, flat)
    _declare(draft)


def _known(draft: Draft) -> list[Change]:
    """Sizes that inputs leave open."""
    sizes = (item.type.tensor_type.shape.dim for item in draft.model.graph.input)
    opened = any(not size.HasField("dim_value") for size in itertools.chain(*sizes))
    return [functools.partial(_declare, fixed=True)] if opened else []


def _declare(draft: Draft, *, fixed: bool = False) -> None:
    """Declare inputs as they are; open sizes stay open, unless they're to be fixed."""
    for item in draft.model.graph.input:
        kind = item.type.tensor_type
        if item.name in draft.inputs:
            array = draft.inputs[item.name]
            was = kind.shape.dim
            named = [size.dim_param or None for size in was] if len(was) == array.ndim else [None] * array.ndim
            shape = [size if fixed or not name else name for size, name in zip(array.shape, named, strict=True)]
            item.CopyFrom(helper.make_tensor_value_info(item.name, kind.elem_type, shape))


_SAME: tuple[Callable[[_Axis], Hashable], ...] = (
    lambda axis: axis.size,
    lambda axis: (axis.size, axis.place),
    lambda axis: axis,
)
_KEPT: tuple[_Window, ...] = (
    lambda size: range(min(size, 1)),
    lambda size: range(min(size, 2)),
    lambda size: range(size // 2, size),
    lambda size: range((size + 1) // 2),
)
_FLATTER = (functools.partial(_flatter, most=sys.maxsize), functools.partial(_flatter, most=1))

SHAPES: tuple[Level, ...] = (_known, *(_together(same, kept) for kept in _KEPT for same in _SAME), *_FLATTER)

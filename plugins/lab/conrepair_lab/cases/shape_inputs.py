"""Inputs that are shapes, axes, counts or ends (Reshape's, Slice's, Range's): numbers that fit what they are for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx
from onnx import helper, shape_inference

from conrepair.verdicts.truth.widening import sizes_of
from conrepair_lab.cases.case import Array

_Drawn = Callable[[np.random.Generator, int, Sequence[int], int], Sequence[int] | Array]
"""So many numbers, by the sizes of the node's first operand, and its axis."""


def fitted(model: onnx.ModelProto, feeds: Mapping[str, Array], generator: np.random.Generator) -> dict[str, Array]:
    """Inputs of which those that a node reads as a shape, or the like, are drawn as such.

    Args:
        model: Of definite sizes.
        feeds: By input.
        generator: By which they're drawn.

    Returns:
        The others as they are, and those that nothing is known of.
    """
    found = dict(feeds)
    inferred = shape_inference.infer_shapes(model).graph
    shapes = {value.name: sizes_of(value) for value in (*inferred.input, *inferred.value_info)}
    for node in model.graph.node:
        given = {item.name: helper.get_attribute_value(item) for item in node.attribute}
        first = shapes.get(node.input[0]) if node.input else None
        for place, name in enumerate(node.input):
            drawn = _DRAWN.get(("Reduce" if node.op_type.startswith("Reduce") else node.op_type, place))
            if drawn is None or name not in feeds or (first is None and place):
                continue
            numbers = drawn(generator, feeds[name].size, first or (), given.get("axis", _AXIS.get(node.op_type, 0)))
            if len(numbers) == feeds[name].size:
                found[name] = np.asarray(numbers).astype(feeds[name].dtype).reshape(feeds[name].shape)
    return found


def _factors(generator: np.random.Generator, count: int, sizes: Sequence[int], _: int) -> Sequence[int]:
    """Sizes of as many elements."""
    found, left, divisor = [1] * count, math.prod(sizes), 2
    while left > 1 and count:
        if left % divisor:
            divisor += 1
            continue
        found[generator.integers(count)] *= divisor
        left //= divisor
    return found if left else [0] * count


def _broadcast(generator: np.random.Generator, count: int, sizes: Sequence[int], _: int) -> Sequence[int]:
    drawn = [int(number) for number in generator.integers(1, 4, max(count, len(sizes)))]
    return [
        old if old != 1 else new for old, new in zip([1] * (len(drawn) - len(sizes)) + [*sizes], drawn, strict=True)
    ]


def _parts(generator: np.random.Generator, count: int, sizes: Sequence[int], axis: int) -> Array:
    ends = np.sort(generator.integers(0, sizes[axis] + 1, max(count - 1, 0)))
    return np.diff([0, *ends, sizes[axis]])


def _axes(generator: np.random.Generator, count: int, rank: int) -> Array:
    return generator.permutation(rank)[:count]


def _between(low: int, high: int) -> _Drawn:
    return lambda generator, count, *_: generator.integers(low, high + 1, count)


_AXIS = {"TopK": -1}
_DRAWN: Mapping[tuple[str, int], _Drawn] = {
    ("Reshape", 1): _factors,
    ("Expand", 1): _broadcast,
    ("Split", 1): _parts,
    ("Tile", 1): _between(1, 3),
    ("ConstantOfShape", 0): _between(1, 4),
    ("Pad", 1): _between(0, 2),
    ("OneHot", 1): _between(2, 5),
    ("Range", 0): _between(0, 2),
    ("Range", 1): _between(3, 6),
    ("Range", 2): _between(1, 2),
    ("Slice", 1): _between(0, 0),
    ("Slice", 2): lambda generator, count, sizes, _: generator.integers(1, min(sizes, default=1) + 1, count),
    ("Slice", 3): lambda generator, count, sizes, _: _axes(generator, count, len(sizes)),
    ("Slice", 4): _between(1, 2),
    ("Reduce", 1): lambda generator, count, sizes, _: _axes(generator, count, len(sizes)),
    ("CumSum", 1): lambda generator, count, sizes, _: _axes(generator, count, len(sizes)),
    ("Squeeze", 1): lambda _, count, sizes, __: [axis for axis, size in enumerate(sizes) if size == 1][:count],
    ("Unsqueeze", 1): lambda generator, count, sizes, _: _axes(generator, count, len(sizes) + count),
    ("TopK", 1): lambda generator, count, sizes, axis: generator.integers(1, sizes[axis] + 1, count),
    ("Resize", 3): lambda generator, _, sizes, __: [*sizes[:2], *(np.array(sizes[2:]) * generator.integers(1, 3))],
}

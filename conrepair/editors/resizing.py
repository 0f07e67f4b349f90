"""What else a network must say otherwise once its inputs have other sizes: the shapes that are written into it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from conrepair.editors.operation import NotEditableError, Sizes, operation_of
from conrepair.editors.operation_shapes import shape_of_result
from conrepair.graph.layer_graph import LayerGraph, Node

__all__ = ["new_shapes", "resized"]

_SHAPED = {"Reshape", "Expand"}


def new_shapes(graph: LayerGraph, inputs: Mapping[str, tuple[int, ...]]) -> Mapping[str, tuple[int, ...]]:
    """The shapes that nodes must give which have theirs written into them.

    Args:
        graph: As it is; its tensors' shapes are known.
        inputs: The new shape of each input that gets another one.

    Returns:
        By node: of reshapes and expansions, where their shape changes and is known.
    """
    now: dict[str, Sizes | None] = {name: tensor.shape for name, tensor in graph.tensors.items()}
    now.update(inputs)
    found: dict[str, tuple[int, ...]] = {}
    for node in graph.nodes:
        read = [name for name in node.inputs if name]
        if all(now.get(name) == _before(graph, name) for name in read):
            continue
        for name in node.outputs:
            now[name] = _result(graph, node, [now.get(item) for item in read], graph.tensors[name].shape)
            after = now[name]
            if node.op in _SHAPED and after is not None and after != graph.tensors[name].shape:
                found[node.name] = tuple(int(size or 0) for size in after)
    return found


def resized(before: tuple[int, ...], now: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape that a tensor of other sizes is seen in.

    Args:
        before: Sizes as they were.
        now: As they are.
        shape: What the first ones were seen as.

    Returns:
        None where that can't be told: an axis that changes is torn apart.
    """
    sizes = list(shape)
    for axis, (old, new) in enumerate(zip(before, now, strict=True)):
        if old == new:
            continue
        # As many numbers as come in front of an axis before must come in front of it afterwards.
        front = math.prod(before[:axis])
        ends = [(place, math.prod(shape[:place]), math.prod(shape[: place + 1])) for place in range(len(shape))]
        places = [place for place, begin, end in ends if begin < front * old and end > front]
        if old == 1:
            alone = [place for place, begin, end in ends if begin == end == front]
            places = alone[:1] or [place for place, begin, end in ends if begin <= front <= end]
        if len(places) == 1 and sizes[places[0]] % old == 0:
            sizes[places[0]] = sizes[places[0]] // old * new
        elif old > 1 and math.prod(shape[place] for place in places) == old:
            # An axis that's taken apart, as rows and columns are: all of its parts grow alike.
            factor = _root(Fraction(new, old), len(places))
            if factor is None or any(sizes[place] * factor % 1 for place in places):
                return None
            for place in places:
                sizes[place] = int(sizes[place] * factor)
        else:
            return None
    return tuple(sizes) if math.prod(sizes) == math.prod(now) else None


def _root(number: Fraction, degree: int) -> Fraction | None:
    """A root, where it's exact."""
    parts = [round(part ** (1 / degree)) for part in (number.numerator, number.denominator)]
    found = Fraction(*parts)
    return found if found**degree == number else None


def _result(graph: LayerGraph, node: Node, now: Sequence[Sizes | None], shape: Sizes | None) -> Sizes | None:
    """What shape a node gives by now; None where that isn't known."""
    before = [_before(graph, name) for name in node.inputs if name]
    if shape is None or any(item is None for item in (*now, *before)):
        return None
    known = [tuple(int(size or 0) for size in item) for item in now if item is not None]
    old = [tuple(int(size or 0) for size in item) for item in before if item is not None]
    sizes = tuple(int(size or 0) for size in shape)
    if node.op == "Reshape":
        return resized(old[0], known[0], sizes)
    try:
        operation = operation_of(node)
        operation = replace(operation, inputs=tuple(range(len(old))))
        # A rule that says what the shape is holds for other sizes too.
        if shape_of_result(operation, old) == shape:
            return shape_of_result(operation, known)
    except (NotEditableError, KeyError, IndexError, TypeError, ValueError):
        pass  # an operator whose sizes aren't known from its attributes
    return _alike(old[0], known[0], sizes)


def _alike(before: tuple[int, ...], now: tuple[int, ...], shape: tuple[int, ...]) -> Sizes | None:
    """Of an operator that isn't known: axes of the same size, or in proportion."""
    changed = [axis for axis, (old, new) in enumerate(zip(before, now, strict=True)) if old != new]
    if len(shape) == len(before):
        if sorted(shape) == sorted(before) and shape != before:
            if any(before.count(before[axis]) > 1 for axis in changed):
                return None
            return tuple(now[before.index(size)] for size in shape)
        pairs = zip(shape, before, now, strict=True)
        sizes = [size if old == new else None if size * new % old else size * new // old for size, old, new in pairs]
        return None if None in sizes else tuple(sizes)
    return None if any(before[axis] in shape for axis in changed) else shape


def _before(graph: LayerGraph, name: str) -> Sizes | None:
    return graph.tensors[name].shape if name in graph.tensors else None

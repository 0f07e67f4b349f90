"""What else a network must say otherwise once its inputs have other sizes: the shapes that are written into it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from conrepair.formats.editing.operation import NotEditableError, Sizes, operation_of
from conrepair.formats.editing.operation_shapes import shape_of_result
from conrepair.ground.graph.layer_graph import LayerGraph, Node

SHAPED = frozenset({"Reshape", "Expand"})
"""Operators that have a shape written into them."""

Merge = tuple[tuple[int, int], ...]
"""Axes that were put together to one: the size of each as it was, and as it is."""


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
    merged: list[Merge] = []
    for node in graph.nodes:
        # What else these read are sizes that the program computes.
        inputs_read = node.inputs[:1] if node.op in SHAPED else node.inputs
        read = [name for name in inputs_read if name]
        if all(now[name] == graph.tensors[name].shape for name in read):
            continue
        for name in node.outputs:
            now[name] = _result(graph, node, read, now, merged)
            after = now[name]
            if node.op in SHAPED and after is not None and after != graph.tensors[name].shape:
                found[node.name] = tuple(int(size or 0) for size in after)
    return found


def resized(
    before: tuple[int, ...], now: tuple[int, ...], shape: tuple[int, ...], merged: Sequence[Merge] = ()
) -> tuple[int, ...] | None:
    """The shape that a tensor of other sizes is seen in.

    An axis that's taken apart becomes what was put together to it, where that's known; else its first part grows, as
    the number of windows does whose size stays.

    Args:
        before: Sizes as they were.
        now: As they are.
        shape: What the first ones were seen as.
        merged: What was put together before.

    Returns:
        None where that can't be told: an axis that changes is torn apart, or may be rows and columns.
    """
    sizes = list(shape)
    for axis, (old, new) in enumerate(zip(before, now, strict=True)):
        if old == new:
            continue
        places = _places(before, axis, shape)
        parts = tuple(shape[place] for place in places)
        if len(places) == 1 and sizes[places[0]] % old == 0:
            sizes[places[0]] = sizes[places[0]] // old * new
        elif old > 1 and math.prod(parts) == old and (grown := _grown(parts, new, merged)) is not None:
            for place, size in zip(places, grown, strict=True):
                sizes[place] = size
        else:
            return None
    return tuple(sizes) if math.prod(sizes) == math.prod(now) else None


def _places(before: tuple[int, ...], axis: int, shape: tuple[int, ...]) -> list[int]:
    """Where an axis comes to lie: as many numbers as come in front of it before come in front of it afterwards."""
    old, front = before[axis], math.prod(before[:axis])
    ends = [(place, math.prod(shape[:place]), math.prod(shape[: place + 1])) for place in range(len(shape))]
    if old > 1:
        return [place for place, begin, end in ends if begin < front * old and end > front and end > begin]
    alone = [place for place, begin, end in ends if begin == end == front]
    return alone[:1] or [place for place, begin, end in ends if begin <= front <= end]


def _grown(parts: tuple[int, ...], size: int, merged: Sequence[Merge]) -> tuple[int, ...] | None:
    """New sizes of the parts of an axis."""
    for merge in reversed(merged):
        if tuple(old for old, _ in merge) == parts and math.prod(new for _, new in merge) == size:
            return tuple(new for _, new in merge)
    alike = len(set(parts)) == 1 and round(size ** (1 / len(parts))) ** len(parts) == size
    if alike or size % math.prod(parts[1:]):
        return None
    return (size // math.prod(parts[1:]), *parts[1:])


def _merges(before: tuple[int, ...], now: tuple[int, ...], shape: tuple[int, ...]) -> list[Merge]:
    """The axes that a reshape puts together."""
    inside: dict[int, list[tuple[int, int]]] = {}
    for axis, (old, new) in enumerate(zip(before, now, strict=True)):
        places = _places(before, axis, shape)
        if len(places) == 1 and old > 1:
            inside.setdefault(places[0], []).append((old, new))
    return [tuple(axes) for axes in inside.values() if len(axes) > 1]


def _result(
    graph: LayerGraph, node: Node, read: Sequence[str], now: Mapping[str, Sizes | None], merged: list[Merge]
) -> Sizes | None:
    """What shape a node gives by now; None where that isn't known. Notes what it puts together."""
    shape, before = graph.tensors[node.outputs[0]].shape, [graph.tensors[name].shape for name in read]
    if shape is None or any(item is None for item in (*(now[name] for name in read), *before)):
        return None
    known = [tuple(int(size or 0) for size in now[name] or ()) for name in read]
    old = [item or () for item in before]
    if node.op == "Reshape":
        after = resized(old[0], known[0], shape, merged)
        if after is not None:
            merged += _merges(old[0], known[0], shape)
        return after
    try:
        operation = operation_of(node)
        operation = replace(operation, inputs=tuple(range(len(old))))
        # A rule that says what the shape is holds for other sizes too.
        if shape_of_result(operation, old) == shape:
            return shape_of_result(operation, known)
    except (NotEditableError, KeyError, IndexError, TypeError, ValueError):
        pass  # an operator whose sizes aren't known from its attributes
    return _alike(old[0], known[0], shape)


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

"""A composite's parameters against those of its pieces: what's there is paired off, what's left over is compared."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from conrepair.diagnosis.localization.faces.numbers.changed import Values, portion_of
from conrepair.diagnosis.localization.faces.numbers.parameters import difference
from conrepair.diagnosis.localization.faces.region import Finding, Region
from conrepair.diagnosis.localization.numbers import naming
from conrepair.ground.graph.layer_graph import Node, Parameter
from conrepair.ground.metrics.running_error import relative_l2

_MOST_PARTS = 4


@dataclass(frozen=True)
class CarriedParameter:
    """A parameter, and the nodes that have it.

    Attributes:
        nodes: Of one side.
        role: What it is for them.
        parameter: As the first of them has it.
        values: Its numbers, without axes of one element.
    """

    nodes: tuple[Node, ...]
    role: str
    parameter: Parameter
    values: Values


def carried_differences(region: Region) -> Iterator[Finding]:
    """Parameters that the pieces should have from the composite, and have otherwise.

    Matrices of another shape are compared without regard to their order: frameworks have gates and heads in orders of
    their own.
    """
    for one, two in carried_pairs(region):
        yield from _compared(one, two)


def carried_pairs(region: Region) -> Iterator[tuple[CarriedParameter, CarriedParameter]]:
    """Parameters of the source and of the target that belong together, and differ.

    What has the same numbers on both sides is paired off, and what's an equal part of it (one projection for
    queries, keys and values). What's left over belongs to what it's much nearer to than to any other, or to a portion
    of that. Else only where one parameter of a size is left over on each side do they belong together: conversions
    compute new ones from several, too.
    """
    ours, kept, left = _left_over(region)
    nearest = [(_nearest(item, ours), item) for item in left]
    near = [(one, item) for one, item in nearest if one is not None]
    yield from near
    left = [item for one, item in nearest if one is None]
    kept = [item for item in kept if all(item.parameter is not one.parameter for one, _ in near)]
    for one in kept:
        same_size = [item for item in kept if item.values.size == one.values.size]
        others = [item for item in left if item.values.size == one.values.size]
        if len(same_size) == len(others) == 1:
            yield one, others[0]


def are_other_numbers(region: Region) -> bool:
    """Whether what isn't the same on both sides is as many numbers of each size."""
    _, kept, left = _left_over(region)
    sizes = [sorted(item.values.size for item in side) for side in (kept, left)]
    return sizes[0] == sizes[1] != []


def _left_over(region: Region) -> tuple[list[CarriedParameter], list[CarriedParameter], list[CarriedParameter]]:
    """All parameters of the source, and those of either side that the other hasn't."""
    ours, theirs = _held(region.source.nodes), _held(region.target.nodes)
    ours = [item for item in ours if item.values.any()]  # nothing is left of zeros that are added
    kept = [item for item in ours if not any(_overlaps(item, other) for other in theirs)]
    return ours, kept, [item for item in theirs if not any(_overlaps(other, item) for other in ours)]


def _nearest(given: CarriedParameter, ours: Sequence[CarriedParameter]) -> CarriedParameter | None:
    """The parameter that another one is near to, or the portion of one, in that one's order of axes."""
    found: list[tuple[float, CarriedParameter]] = []
    for item in ours:
        for turned in (item.values, item.values.T) if item.values.ndim == 2 else (item.values,):
            like = turned if turned.shape == given.values.shape else portion_of(turned, given.values)
            if like is not None:
                found.append((relative_l2(like, given.values), replace(item, values=like)))
    found.sort(key=lambda entry: entry[0])
    near = found and found[0][0] <= naming.LIKE and (len(found) == 1 or found[0][0] * naming.LIKER < found[1][0])
    return found[0][1] if near else None


def _held(nodes: Sequence[Node]) -> list[CarriedParameter]:
    """Each parameter once: turns of a loop have the same."""
    found: dict[tuple[object, ...], CarriedParameter] = {}
    for node in nodes:
        for role, parameter in node.parameters.items():
            if math.prod(parameter.shape) < 2 or parameter.dtype == "object":
                continue  # nothing is computed from texts
            array = parameter.numpy().astype(np.float64)
            values = array.reshape([size for size in array.shape if size != 1])
            first = found.setdefault((values.shape, values.tobytes()), CarriedParameter((), role, parameter, values))
            found[values.shape, values.tobytes()] = replace(first, nodes=(*first.nodes, node))
    return list(found.values())


def _overlaps(one: CarriedParameter, two: CarriedParameter) -> bool:
    """Whether the numbers are the same, or those of the one a part of the other's."""
    large, small = sorted((one.values, two.values), key=lambda values: -values.size)
    parts, rest = divmod(large.size, max(small.size, 1))
    if rest or not 1 <= parts <= _MOST_PARTS:
        return False
    axes = [axis for axis, size in enumerate(large.shape) if size % parts == 0]
    return any(_same(part, small) for axis in axes for part in np.split(large, parts, axis=axis))


def _same(one: Values, two: Values) -> bool:
    first, second = _comparable(one, two)
    return float(np.linalg.norm(first - second)) <= naming.SAME * float(np.linalg.norm(first))


def _comparable(one: Values, two: Values) -> tuple[Values, Values]:
    if one.shape == two.shape:
        return one, two
    return np.sort(one, axis=None), np.sort(two, axis=None)


def _compared(one: CarriedParameter, two: CarriedParameter) -> Iterator[Finding]:
    found = difference(*_comparable(one.values, two.values))
    if found is None or (found.relative > naming.UNLIKE and found.words.startswith("off by")):
        return
    named = f" ({two.parameter.name})" if two.parameter.name else ""
    layers = tuple(node.layer for node in two.nodes)
    words = f"the {two.role}{named} of `{layers[0]}` should be the {one.role} of `{one.nodes[0].layer}`"
    source = tuple(node.layer for node in one.nodes)
    yield Finding(found.kind, f"{words}, and is {found.words}", source, layers, rule=found.rule)

"""A composite's parameters against those of its pieces: what's there is paired off, what's left over is compared."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from conrepair.graph.layer_graph import Node, Parameter
from conrepair.localize.diagnosis.finding import Finding
from conrepair.localize.diagnosis.parameters import Values, difference
from conrepair.localize.diagnosis.region import Region

__all__ = ["carried_differences"]

_SAME = 1e-5
_UNLIKE = 1.0  # relative L2 from which on two arrays just aren't the same parameter


@dataclass(frozen=True)
class _Held:
    """A parameter, and the node that has it."""

    node: Node
    role: str
    parameter: Parameter
    values: Values


def carried_differences(region: Region) -> Iterator[Finding]:
    """Parameters that the pieces should have from the composite, and have otherwise.

    What has the same numbers on both sides is paired off. Only where one parameter of a size is left over on each
    side do they belong together: conversions compute new ones from several, too.
    """
    ours, theirs = list(_held(region.source.nodes)), list(_held(region.target.nodes))
    ours = [item for item in ours if item.values.any()]  # nothing is left of zeros that are added
    kept = [item for item in ours if not any(_carries(item, other) for other in theirs)]
    left = [item for item in theirs if not any(_carries(other, item) for other in ours)]
    for one in kept:
        same_size = [item for item in kept if item.values.size == one.values.size]
        others = [item for item in left if item.values.size == one.values.size]
        if len(same_size) == len(others) == 1:
            yield from _compared(one, others[0])


def _held(nodes: Sequence[Node]) -> Iterator[_Held]:
    for node in nodes:
        for role, parameter in node.parameters.items():
            if math.prod(parameter.shape) > 1:
                array = parameter.numpy().astype(np.float64)
                yield _Held(node, role, parameter, array.reshape([size for size in array.shape if size != 1] or [1]))


def _carries(one: _Held, two: _Held) -> bool:
    """Whether the numbers are the same, transposed or not."""
    first, second = one.values, two.values
    if first.size != second.size:
        return False
    turned = [second, second.T] if second.ndim == 2 else [second]
    bound = _SAME * float(np.linalg.norm(first))
    return any(float(np.linalg.norm(first.ravel() - item.ravel())) <= bound for item in turned)


def _compared(one: _Held, two: _Held) -> Iterator[Finding]:
    if one.values.shape != two.values.shape:
        return  # written in another way: by gates, by heads
    found = difference(one.values, two.values)
    if found is None or (found.relative > _UNLIKE and found.words.startswith("off by")):
        return
    named = f" ({two.parameter.name})" if two.parameter.name else ""
    words = f"the {two.role}{named} of `{two.node.layer}` should be the {one.role} of `{one.node.layer}`"
    yield Finding(
        found.kind,
        f"{words}, and is {found.words}",
        (one.node.layer,),
        (two.node.layer,),
        f"at {two.node.layer}",
    )

"""In an unrolled loop, where no step can be paired: give one turn the numbers that the other turns have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from conrepair.graph.layer_graph import Array, Node
from conrepair.repairs.edits import SetParameter
from conrepair.repairs.proposals.proposal import Proposal, Setting

__all__ = ["odd_parameter_proposals"]

_TURNS = 3  # of a loop, at least
_MOST = 2  # turns that may be odd; where each has its own numbers, none is


def odd_parameter_proposals(setting: Setting) -> Iterator[Proposal]:
    """The numbers that several operators of a piece share, for one alike that has others; the likest ones first.

    A loop's operators occur once for each turn, with the same numbers. Which of those that have one shape an operator
    should have isn't known where they're no more like the one's than like the other's.
    """
    alike: dict[tuple[str, str, tuple[int, ...]], list[Node]] = {}
    for node in setting.region.target.nodes:
        for role, parameter in node.parameters.items():
            if int(np.prod(parameter.shape, dtype=np.int64)) > 1:
                alike.setdefault((node.op, role, parameter.shape), []).append(node)
    for (_, role, _), nodes in alike.items():
        if len(nodes) <= _TURNS:
            continue
        groups: dict[bytes, list[tuple[Node, Array]]] = {}
        for node in nodes:
            values = node.parameters[role].numpy()
            groups.setdefault(values.tobytes(), []).append((node, values))
        odd = [group[0] for group in groups.values() if len(group) == 1]
        shared = [group[0][1] for group in groups.values() if len(group) >= _TURNS - 1]
        if not shared or len(odd) > _MOST:
            continue
        for node, values in odd:
            place = setting.places.of(node)
            if place is None or role not in place.parameters:
                continue
            shape = place.parameters[role].shape
            yield from ((SetParameter(place.name, role, item.reshape(shape)),) for item in _likest(shared, values))


def _likest(shared: Sequence[Array], values: Array) -> list[Array]:
    """Numbers in the order of how like they are to others, whatever their sizes."""
    flat = values.astype(np.float64).ravel()

    def likeness(item: Array) -> float:
        other = item.astype(np.float64).ravel()
        sizes = float(np.linalg.norm(flat) * np.linalg.norm(other))
        return abs(float(flat @ other)) / sizes if sizes else 0.0

    return sorted(shared, key=likeness, reverse=True)

"""The tensors of a network that are compared, and what lies around each of them in the graph."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from conrepair.graph.layer_graph import LayerGraph, Node
from conrepair.localization.weights import weight_of

__all__ = ["Neighbourhood", "Neighbours", "neighbours_of"]

Neighbours = tuple[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]], ...]
"""Of each tensor of the source, and of the target, places of neighbours on one side of it; -1 for none."""

_NEIGHBOURS = 6
_FAR = 48  # nodes that are looked at for the next one with weights


class Neighbourhood:
    """The tensors of a graph that are compared, and what lies around each.

    Attributes:
        graph: The network.
        names: Of the tensors, in the graph's order.
        place: Of each name among them.
    """

    def __init__(self, graph: LayerGraph, names: Sequence[str], shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Look around.

        Args:
            graph: The network.
            names: Tensors that are compared, in the graph's order.
            shapes: As they were when the network ran.
        """
        self.graph = graph
        self.names = names
        self._shapes = shapes
        self.place = {name: place for place, name in enumerate(names)}

    @cached_property
    def results(self) -> npt.NDArray[np.bool_]:
        """Which tensors are results of the network."""
        ends = set(self.graph.outputs)
        return np.array([name in ends for name in self.names], np.bool_)

    @cached_property
    def before(self) -> npt.NDArray[np.int64]:
        """The nearest compared tensors that each is computed from, [tensors, neighbours]; -1 where there's none."""
        return self._nearest(lambda name: self.graph.producers[name].inputs if name in self.graph.producers else ())

    @cached_property
    def behind(self) -> npt.NDArray[np.int64]:
        """The nearest compared tensors that are computed from each."""
        return self._nearest(
            lambda name: tuple(out for node in self.graph.consumers.get(name, ()) for out in node.outputs)
        )

    def before_each(self, marked: Mapping[str, int], names: Iterable[str]) -> list[int]:
        """Which marked tensors are needed to compute each of some.

        Args:
            marked: Numbers with one bit set, or more, by the tensors' names.
            names: Of any tensors.

        Returns:
            The bits of those that are needed; a tensor isn't needed for itself.
        """
        bits: dict[str, int] = {}
        for node in self.graph.nodes:
            found = 0
            for name in node.inputs:
                if name:
                    found |= bits.get(name, 0) | marked.get(name, 0)
            for name in node.outputs:
                bits[name] = found
        return [bits.get(name, 0) for name in names]

    def behind_each(self, marked: Mapping[str, int], names: Iterable[str]) -> list[int]:
        """Which marked tensors are computed from each of some; see `before_each`."""
        bits: dict[str, int] = {}
        for node in reversed(self.graph.nodes):
            found = 0
            for name in node.outputs:
                found |= bits.get(name, 0) | marked.get(name, 0)
            if found:
                for name in filter(None, node.inputs):
                    bits[name] = bits.get(name, 0) | found
        return [bits.get(name, 0) for name in names]

    def shape(self, name: str) -> tuple[int, ...]:
        """Of a compared tensor."""
        return self._shapes[name]

    def around(self, name: str) -> list[str]:
        """Compared tensors computed from one, the nearest first, then those that it's computed from."""
        place = self.place[name]
        found = [self.names[index] for side in (self.behind, self.before) for index in side[place] if index >= 0]
        return list(dict.fromkeys(found))

    def anchors(self, *, forward: bool) -> list[Node | None]:
        """The next node with weights before (or behind) each tensor."""
        near = (itertools.islice(self.graph.nearest([name], forward=forward), _FAR) for name in self.names)
        return [next((node for node in nodes if weight_of(node) is not None), None) for nodes in near]

    def _nearest(self, step: Callable[[str], Iterable[str]]) -> npt.NDArray[np.int64]:
        result = np.full((len(self.names), _NEIGHBOURS), -1, np.int64)
        for place, name in enumerate(self.names):
            found: list[int] = []
            queue, seen = deque(filter(None, step(name))), set[str]()
            while queue and len(found) < _NEIGHBOURS:
                item = queue.popleft()
                if item in seen:
                    continue
                seen.add(item)
                if item in self.place:
                    found.append(self.place[item])
                else:
                    queue.extend(filter(None, step(item)))
            result[place, : len(found)] = found
        return result


def neighbours_of(source: Neighbourhood, target: Neighbourhood) -> Neighbours:
    """Those before the tensors of both networks, and those behind them."""
    return (source.before, target.before), (source.behind, target.behind)

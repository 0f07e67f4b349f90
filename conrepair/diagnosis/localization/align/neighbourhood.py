"""The tensors of a network that are compared, and what lies around each of them in the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from conrepair.ground.graph.layer_graph import LayerGraph


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

    def shape(self, name: str) -> tuple[int, ...]:
        """Of a compared tensor."""
        return self._shapes[name]

"""Random networks without a framework: graphs of nodes, and what they compute."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from conrepair.formats.networks.network import Network, Segment
from conrepair.ground.graph.layer_graph import LayerGraph, Node, Tensor

Array = npt.NDArray[Any]
SHAPE = (2, 3, 4)

FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "Tanh": np.tanh,
    "Sin": lambda x: np.sin(3 * x),
    "Softplus": lambda x: np.logaddexp(x, 0),
    "Erf": lambda x: x / (1 + np.abs(x)) + 0.3,
    "Abs": lambda x: np.abs(x) - 0.4,
    "Identity": lambda x: x,
}
_BENT = sorted(set(FUNCTIONS) - {"Identity"})


Written = tuple[str, str, Sequence[str], Sequence[str]]
"""A node: name, operator, inputs, outputs."""


def graph_of(
    inputs: Sequence[str], nodes: Sequence[Written], outputs: Sequence[str], shape: tuple[int, ...] = SHAPE
) -> LayerGraph:
    """A graph of real tensors of one shape."""
    names = [*dict.fromkeys(inputs), *(name for node in nodes for name in node[3])]
    return LayerGraph(
        tuple(inputs),
        tuple(outputs),
        {name: Tensor(name, shape, "float32") for name in names},
        tuple(Node(name, name, op, op, tuple(reads), tuple(gives)) for name, op, reads, gives in nodes),
    )


@st.composite
def graphs(draw: st.DrawFn, most: int = 9, *, one_output: bool = False) -> LayerGraph:
    """Nodes of one or two results, that read any tensors before them; some read one twice, or leave one out."""
    known = [f"x{place}" for place in range(draw(st.integers(1, 2)))]
    inputs = tuple(known)
    nodes = []
    for place in range(draw(st.integers(1, most))):
        reads = draw(st.lists(st.sampled_from(known), min_size=1, max_size=3))
        if not one_output and draw(st.booleans()):
            reads.insert(draw(st.integers(0, len(reads))), "")
        gives = [f"t{place}.{part}" for part in range(1 if one_output else draw(st.integers(1, 2)))]
        nodes.append((f"n{place}", draw(st.sampled_from(_BENT)), reads, gives))
        known += gives
    outputs = draw(st.lists(st.sampled_from(known), min_size=1, max_size=2))
    return graph_of(inputs, nodes, outputs)


class Computed(Network):
    """A graph that numpy computes: each node a function of a weighted sum of what it reads."""

    def __init__(self, graph: LayerGraph, changed: Mapping[str, Callable[[Array], Array]] | None = None) -> None:
        self.graph = graph
        self.input_names = {name: name for name in graph.inputs}
        self.output_names = {f"output {place}": name for place, name in enumerate(graph.outputs)}
        self.changed = changed or {}

    def segment(self, fed: Collection[str], wanted: Sequence[str]) -> Segment:
        return _Piece(self, fed, wanted)

    def apply(self, node: Node, reads: Sequence[Array]) -> dict[str, Array]:
        """The node's outputs; a second one has the same numbers in other places."""
        total = sum((place + 1) * array for place, array in enumerate(reads))
        result = FUNCTIONS[node.op](np.asarray(total, dtype=np.float32))
        array = np.asarray(self.changed.get(node.name, lambda x: x)(result), dtype=np.float32)
        return {name: np.roll(array, place, -1) if place else array for place, name in enumerate(node.outputs)}


class _Piece(Segment):
    def __init__(self, network: Computed, fed: Collection[str], wanted: Sequence[str]) -> None:
        graph = network.graph
        self._network, self._nodes = network, graph.between(list(fed), wanted)
        self.wanted = tuple(wanted)
        made: set[str] = set()
        needs: dict[str, None] = {}
        for node in self._nodes:
            needs.update((name, None) for name in node.inputs if name in fed or (name and name not in made))
            made.update(node.outputs)
        self.needs = tuple(needs)
        missing = [name for name in self.needs if name not in fed]
        if missing:
            raise ValueError(f"{missing} are needed and not fed")

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        values = dict(feeds)
        results: dict[str, Array] = {}
        for node in self._nodes:
            for name, array in self._network.apply(node, [values[name] for name in node.inputs if name]).items():
                results[name] = array
                values.setdefault(name, array)  # who reads a tensor that's fed gets what is fed
        return {name: results[name] for name in self.wanted}


def disguised(graph: LayerGraph, seed: int, *, extra: bool = True) -> tuple[LayerGraph, dict[str, str]]:
    """The same graph in other words: other names, independent nodes in another order, copies here and there.

    Returns:
        The graph, and what each tensor is called in it.
    """
    generator = np.random.default_rng(seed)
    names = {name: f"v{number}" for name, number in zip(graph.tensors, generator.permutation(99), strict=False)}
    nodes: list[Written] = []
    known = {names[name] for name in graph.inputs}
    waiting = list(graph.nodes)
    read_as = dict(names)
    while waiting:
        ready = [node for node in waiting if all(names[name] in known for name in node.inputs if name)]
        node = ready[int(generator.integers(len(ready)))]
        waiting.remove(node)
        reads = [read_as.get(name, "") for name in node.inputs]
        gives = [names[name] for name in node.outputs]
        nodes.append((f"m{len(nodes)}", node.op, reads, gives))
        known.update(gives)
        if extra and generator.random() < 0.3:
            copy = f"copy of {gives[0]}"
            nodes.append((f"m{len(nodes)}", "Identity", gives[:1], [copy]))
            read_as[node.outputs[0]] = copy
    inputs, outputs = ([names[name] for name in side] for side in (graph.inputs, graph.outputs))
    return graph_of(inputs, nodes, outputs), names


def drawn_feeds(graph: LayerGraph, seed: int = 0) -> dict[str, Array]:
    generator = np.random.default_rng(seed)
    return {name: generator.standard_normal(SHAPE).astype(np.float32) for name in graph.inputs}


def all_values(network: Computed, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """Every tensor of a run, node by node, without segments."""
    values = dict(feeds)
    for node in network.graph.nodes:
        values.update(network.apply(node, [values[name] for name in node.inputs if name]))
    return values

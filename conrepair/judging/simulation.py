"""A network computed in another arithmetic: by its own runtime, operator by operator, rounded between them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain

import numpy as np

from conrepair.graph.layer_graph import Array, LayerGraph, Node
from conrepair.graph.operators import OPERATORS, PRODUCTS
from conrepair.judging.arithmetic import Arithmetic, arithmetic_of, unchanged
from conrepair.networks.network import Network, Segment

_SEED = 20261129
_MEAN_STEP = 0.7  # of the largest unit in the last place that numbers of one exponent have: those between have less


class Simulated(Network):
    """What a device gives that computes a network in some arithmetic.

    Each tensor that can be observed is computed from rounded ones, and rounded itself; weights are, too, where the
    network's format lets them be changed. Fused operators round once where they're one node of the graph.
    """

    def __init__(self, network: Network, arithmetic: Arithmetic, *, most: int | None = None) -> None:
        """Take both.

        Args:
            network: As its own runtime computes it.
            arithmetic: To compute it in.
            most: Steps that a piece is computed in, at the end of which all that's computed in one is rounded; None:
                as many as there are tensors.
        """
        self._most = most
        self.graph, self.input_names, self.output_names = network.graph, network.input_names, network.output_names
        self._arithmetic = arithmetic
        self._products = network if arithmetic.weights is unchanged else network.with_weights(arithmetic.weights)
        self._network = network if arithmetic.results is unchanged else self._products

    def segment(self, fed: Collection[str], wanted: Sequence[str]) -> Segment:
        """See `Network`."""
        self.check_cuts(fed, wanted)
        return _Rounded(self.graph, (self._network, self._products), self._arithmetic, fed, wanted, self._most)

    def outputs(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """The model's outputs, by its names for them.

        Args:
            feeds: A batch, by the graph's inputs.
        """
        ends = [name for name in dict.fromkeys(self.output_names.values()) if name not in self.graph.inputs]
        given = {**feeds, **self.segment(self.graph.inputs, ends).run(feeds)} if ends else feeds
        return {name: given[tensor] for name, tensor in self.output_names.items()}


def simulated(network: Network, name: str, feeds: Mapping[str, Array], wanted: str) -> Array:
    """A tensor of a network in an arithmetic, computed from others.

    Args:
        network: As its own runtime computes it.
        name: Of the arithmetic.
        feeds: By tensor.
        wanted: The tensor.
    """
    return Simulated(network, arithmetic_of(name)).segment(tuple(feeds), [wanted]).run(feeds)[wanted]


class _Rounded(Segment):
    """Steps from one tensor that can be observed to the next, each rounded."""

    def __init__(
        self,
        graph: LayerGraph,
        networks: tuple[Network, Network],
        arithmetic: Arithmetic,
        fed: Collection[str],
        wanted: Sequence[str],
        most: int | None,
    ) -> None:
        self.wanted, self._arithmetic = tuple(wanted), arithmetic
        self._fed = frozenset(fed)
        self._steps: list[tuple[Segment, tuple[Node, ...]]] = []
        known, made = dict.fromkeys(fed), list[list[str]]()
        for node in graph.between(self._fed, wanted):
            seen = [name for name in node.outputs if graph.tensors[name].observable]
            rounds = node.op not in OPERATORS or not OPERATORS[node.op].exact  # else all has been rounded already
            made.append([name for name in seen if name in wanted or (rounds and graph.consumers.get(name))])
        made = [names for names in made if names]
        size = max(1, -(-len(made) // most)) if most else 1
        for start in range(0, len(made), size):
            step = list(chain.from_iterable(made[start : start + size]))
            nodes = graph.between(known.keys(), step)
            sums = any(item.op in PRODUCTS for item in nodes)
            self._steps.append((networks[sums].segment(tuple(known), step), nodes))
            known |= dict.fromkeys(step)
        read = set(chain.from_iterable(step.needs for step, _ in self._steps))
        self.needs = tuple(name for name in self._fed if name in read)
        self._last = {name: place for place, (step, _) in enumerate(self._steps) for name in step.needs}

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """See `Segment`."""
        values = {name: self._arithmetic.results(np.asarray(feeds[name])) for name in self.needs}
        found: dict[str, Array] = {}
        for place, (step, nodes) in enumerate(self._steps):
            sums = [node for node in nodes if node.op in PRODUCTS]
            given = {name: values[name] for name in step.needs}
            if sums:
                given = {name: self._arithmetic.operands(array) for name, array in given.items()}
            for name, array in step.run(given).items():
                if self._arithmetic.own_sums:
                    terms = max((node.terms for node in sums), default=1)
                    array = _summed(array, terms, self._arithmetic.unit)
                result = self._arithmetic.results(array)
                if name in self.wanted:
                    found[name] = result
                if name not in self._fed:
                    values[name] = result
            for name in step.needs:
                if self._last[name] == place:
                    del values[name]
        return {name: found[name] for name in self.wanted}


def _summed(array: Array, terms: int, unit: float) -> Array:
    """A sum, each of whose steps was rounded: partial sums grow as a random walk to what it is, as do their errors.

    The k-th of n partial sums has the size sqrt(k / n) of the whole; a rounding error is spread evenly over half a
    unit in the last place, which has a third of the square of what it may be.
    """
    if array.dtype.kind != "f" or terms < 2:
        return array
    finite = array[np.isfinite(array)].astype(np.float64)
    size = float(np.sqrt(np.mean(np.square(finite)))) if finite.size else 0.0
    spread = unit * _MEAN_STEP / np.sqrt(3) * np.sqrt(terms / 2) * size
    return np.asarray(array + np.random.default_rng(_SEED).normal(0.0, spread, array.shape), array.dtype)

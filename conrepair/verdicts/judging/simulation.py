"""A network computed in another arithmetic: by its own runtime, operator by operator, rounded between them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from conrepair.formats.networks.network import Network, Segment
from conrepair.ground.graph.layer_graph import Array, LayerGraph, Node
from conrepair.ground.graph.operators import OPERATORS, PRODUCTS, RECURRENT_ACTIVATIONS
from conrepair.ground.operators.moves import MOVES
from conrepair.verdicts.judging.arithmetic import Arithmetic, unchanged

_SEED = 20261129
_NARROW = 2  # bytes of a type that hasn't got the squares of its own numbers
_OF_SUMS = (PRODUCTS - RECURRENT_ACTIVATIONS.keys()) | MOVES.keys()  # sums of products, and what moves them
_MEAN_STEP = 0.7  # of the largest unit in the last place that numbers of one exponent have: those between have less


class Simulated(Network):
    """What a device gives that computes a network in some arithmetic.

    Each tensor that can be observed is computed from rounded ones, and rounded itself; weights are, too, where the
    network's format lets them be changed. Fused operators round once where they're one node of the graph.
    """

    def __init__(self, network: Network, arithmetic: Arithmetic, *, most: int | None = None) -> None:
        """Take a network and an arithmetic.

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
        self._squares = network.with_weights(np.square) if arithmetic.own_sums else network

    def segment(self, fed: Collection[str], wanted: Sequence[str]) -> Segment:
        """See `Network`."""
        self.check_cuts(fed, wanted)
        networks = self._network, self._products, self._squares
        return _Rounded(self.graph, networks, self._arithmetic, fed, wanted, self._most)

    def tensor(self, feeds: Mapping[str, Array], wanted: str) -> Array:
        """A tensor, computed from others.

        Args:
            feeds: By tensor.
            wanted: The tensor.
        """
        return self.segment(tuple(feeds), [wanted]).run(feeds)[wanted]


@dataclass(frozen=True)
class _Step:
    """Values before they are rounded.

    Attributes:
        segment: That computes it.
        terms: Of sums of products in it; 0 where there are none.
        squares: Computes the sums of their squares from squares; None where it's no sum of products alone.
    """

    segment: Segment
    terms: int
    squares: Segment | None


class _Rounded(Segment):
    """Steps from one tensor that can be observed to the next, each rounded."""

    def __init__(
        self,
        graph: LayerGraph,
        networks: tuple[Network, Network, Network],
        arithmetic: Arithmetic,
        fed: Collection[str],
        wanted: Sequence[str],
        most: int | None,
    ) -> None:
        self.wanted, self._arithmetic = tuple(wanted), arithmetic
        self._fed = frozenset(fed)
        self._steps: list[_Step] = []
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
            sums = [item for item in nodes if item.op in PRODUCTS]
            squares = None
            if arithmetic.own_sums and networks[2] is not networks[0] and all(map(_adds_up, nodes)):
                squares = networks[2].segment(tuple(known), step)
            terms = max((graph.terms(item) for item in sums), default=0)
            self._steps.append(_Step(networks[bool(sums)].segment(tuple(known), step), terms, squares))
            known |= dict.fromkeys(step)
        read = set(chain.from_iterable(step.segment.needs for step in self._steps))
        self.needs = tuple(name for name in self._fed if name in read)
        self._last = {name: place for place, step in enumerate(self._steps) for name in step.segment.needs}

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """See `Segment`."""
        values = {name: self._arithmetic.results(np.asarray(feeds[name])) for name in self.needs}
        found: dict[str, Array] = {}
        for place, step in enumerate(self._steps):
            given = {name: values[name] for name in step.segment.needs}
            if step.terms:
                given = {name: self._arithmetic.operands(array) for name, array in given.items()}
            squares = {} if step.squares is None else step.squares.run(dict(map(_squared, given.items())))
            for name, array in step.segment.run(given).items():
                if self._arithmetic.own_sums:
                    array = _summed(array, step.terms, self._arithmetic.unit, squares.get(name))
                result = self._arithmetic.results(array)
                if name in self.wanted:
                    found[name] = result
                if name not in self._fed:
                    values[name] = result
            for name in step.segment.needs:
                if self._last[name] == place:
                    del values[name]
        return {name: found[name] for name in self.wanted}


def _squared(item: tuple[str, Array]) -> tuple[str, Array]:
    """A tensor's name, and the squares of its real numbers; an index stays."""
    name, array = item
    return name, np.square(array) if array.dtype.kind == "f" else array


def _adds_up(node: Node) -> bool:
    """Whether it's a sum of products, each of them once, or moves numbers."""
    return node.op in _OF_SUMS and {node.attributes.get(name, 1.0) for name in ("alpha", "beta")} == {1.0}


def _summed(array: Array, terms: int, unit: float, squares: Array | None) -> Array:
    """A sum, each of whose steps was rounded, in the order of its terms.

    Partial sums go from zero to the sum s, evenly but for a random walk that the terms' squares q give its steps:
    the k-th of n has the square (k/n)^2 s^2 + k/n (1 - k/n) (q - s^2/n) on average. A rounding error is spread evenly
    over half a unit in the last place, which has a third of the square of what it may be.

    Args:
        array: Sums.
        terms: Of each.
        unit: What rounding to the nearest number may change, relatively.
        squares: Sums of the terms' squares; None where nobody knows them: they're taken for as large as sums' are.
    """
    if array.dtype.kind != "f" or terms < 2:
        return array
    sums = np.square(np.where(np.isfinite(array), array, 0.0).astype(np.float64))
    told = np.asarray(np.nan) if squares is None or array.dtype.itemsize <= _NARROW else squares
    known = np.where(np.isfinite(told), told, np.mean(sums))
    size = np.sqrt(terms * (sums / 3 + np.maximum(known - sums / terms, 0.0) / 6))
    spread = unit * _MEAN_STEP / np.sqrt(3) * size
    return np.asarray(array + np.random.default_rng(_SEED).normal(0.0, 1.0, array.shape) * spread, array.dtype)

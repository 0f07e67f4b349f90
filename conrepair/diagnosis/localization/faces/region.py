"""A segment of the source, the segment of the target that should compute the same, and how they differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from conrepair.diagnosis.localization.align.layout import Layout
from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.numbers import naming
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Array, LayerGraph, Node
from conrepair.ground.metrics.running_error import relative_l2

if TYPE_CHECKING:
    from conrepair.diagnosis.localization.faces.numbers.parameters import ParameterDifference

__all__ = ["Cuts", "Finding", "Region", "Side", "error_in", "left_of", "region_of", "side"]


def left_of(error: float) -> float:
    """The relative L2 that may be left of an error by what explains it."""
    return min(naming.CLOSE, naming.LEFT * error)


def error_in(layout: Layout, expected: Array, result: Array | None) -> float:
    """Relative L2 of a target's result, in its own layout; infinite where there's none, or one of another size."""
    if result is None or result.size != expected.size:
        return math.inf
    return relative_l2(expected, layout.to_source(result))


@dataclass(frozen=True)
class Side:
    """One network's part of a region.

    Attributes:
        graph: The whole network.
        nodes: Those between the cuts, in order; none when the end is one of the begins.
        begins: Cuts that the nodes read.
        end: The tensor that they compute.
    """

    graph: LayerGraph
    nodes: tuple[Node, ...]
    begins: tuple[str, ...]
    end: str

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of its layers, in order."""
        return tuple(dict.fromkeys(node.layer for node in self.nodes))


class Trial(Protocol):
    """Computes a tensor of the target from other values; see `Isolation.trial`."""

    def __call__(self, tensor: str, fetch: Callable[[str], Array], uncut: Collection[str] = ()) -> Array | None: ...


def _untried(tensor: str, fetch: Callable[[str], Array], uncut: Collection[str] = ()) -> None:
    """Of a region without a network."""


def _unknown(tensor: str) -> None:
    """Of a region without a network."""


@dataclass(frozen=True)
class Region:
    """A segment between boundaries, of both networks.

    Attributes:
        source: Of the network that is right.
        target: Of the other one.
        layout: Of the tensor at the end.
        partners: The source's tensor that stands for each of the target's cuts.
        layouts: Of each of the target's cuts.
        expected: The source's tensor at the end, on one batch, in the source's layout.
        computed: The target's there, fed with the source's activations, in the source's layout.
        fed: Gives what the target was fed with at a cut, in its own layout.
        constants: The source's tensors that follow from sizes alone, on that batch.
        trial: Computes a tensor of the target from what stands at the cuts in front of it, in its own layout; None
            where it can't be computed.
        value: Gives any of the source's tensors, on that batch.
        differences: How parameters that were compared differ, by what reads them: readings have most in common.
    """

    source: Side
    target: Side
    layout: Layout
    partners: dict[str, str]
    layouts: dict[str, Layout]
    expected: Array
    computed: Array
    fed: Callable[[str], Array]
    constants: Mapping[str, Array] = field(default_factory=dict)
    trial: Trial = _untried
    value: Callable[[str], Array | None] = _unknown
    differences: dict[tuple[Callable[[], Array], ...], ParameterDifference | None] = field(
        default_factory=dict, compare=False, repr=False
    )

    @property
    def starts_at_input(self) -> bool:
        """Whether only inputs of the network are read: nothing with weights lies before."""
        begins = self.target.begins or self.source.begins
        graph = self.target.graph if self.target.begins else self.source.graph
        return bool(begins) and all(name in graph.inputs for name in begins)


def side(graph: LayerGraph, cuts: Set[str], end: str) -> Side:
    """The part of a network that computes a tensor from the nearest cuts.

    Args:
        graph: The network.
        cuts: Tensors that are known, its inputs among them; the end itself may be one.
        end: What is computed.
    """
    nodes = graph.between(cuts, [end])
    begins = dict.fromkeys(name for node in nodes for name in node.inputs if name in cuts)
    return Side(graph, nodes, tuple(begins), end)


class Cuts:
    """All cuts of two networks, to ask for what lies between them.

    Attributes:
        graphs: The source's and the target's.
    """

    def __init__(self, graphs: tuple[LayerGraph, LayerGraph], pairs: Sequence[Pair]) -> None:
        """Remember them.

        Args:
            graphs: The source's and the target's.
            pairs: All cuts.
        """
        self.graphs = graphs
        self._pairs = {(pair.source, pair.target) for pair in pairs}
        self._paired = {pair.source for pair in pairs}, {pair.target for pair in pairs}
        self._known = self._paired[0].union(graphs[0].inputs), self._paired[1].union(graphs[1].inputs)

    def sides(self, end: Pair) -> tuple[Side, Side]:
        """What computes a pair from the nearest cuts, on both sides.

        Args:
            end: The pair at the end; it may be one that's measured only.
        """
        cut = (end.source, end.target) in self._pairs
        source, target = (
            Side(graph, (), (name,), name) if not cut and name in paired else side(graph, known, name)
            for graph, name, paired, known in zip(
                self.graphs, (end.source, end.target), self._paired, self._known, strict=True
            )
        )
        return source, target


def region_of(
    graphs: tuple[LayerGraph, LayerGraph],
    pairs: Sequence[Pair],
    end: Pair,
    expected: Array,
    computed: Array,
    fed: Callable[[str], Array],
    constants: Mapping[str, Array],
    trial: Trial = _untried,
    value: Callable[[str], Array | None] = _unknown,
) -> Region:
    """Build the region that ends at a pair.

    Args:
        graphs: The source's and the target's.
        pairs: All cuts.
        end: The pair at the end; it may be one that's measured only.
        expected: The source's tensor there.
        computed: The target's there, in the source's layout.
        fed: Gives what the target was fed with at a cut.
        constants: The source's tensors that follow from sizes alone.
        trial: Computes a tensor of the target from other values at the cuts.
        value: Gives any of the source's tensors.
    """
    source, target = Cuts(graphs, pairs).sides(end)
    return Region(
        source,
        target,
        end.layout,
        {pair.target: pair.source for pair in pairs},
        {pair.target: pair.layout for pair in pairs},
        expected,
        computed,
        fed,
        constants,
        trial,
        value,
    )


@dataclass(frozen=True)
class Finding:
    """A difference between two segments.

    Attributes:
        kind: Of fault.
        words: What differs, for a person.
        source_layers: The guiltiest first, each once.
        target_layers: The same of the target.
        cause: The same for differences in several regions that one thing causes: the guiltiest layer of the target,
            where nothing else is said.
        weight: How much it explains: 1 for what certainly changes values, less for what conversions may do.
        rule: What differs without names, the same for layers that one wrong rule of a converter changed; "" where
            that can't be said.
        disturbed: Relative L2 of numbers that are a little off, without a rule; 0 for what's another difference.
    """

    kind: Kind
    words: str
    source_layers: tuple[str, ...]
    target_layers: tuple[str, ...]
    cause: str = ""
    weight: float = 1.0
    rule: str = ""
    disturbed: float = 0.0

    def __post_init__(self) -> None:
        for side in ("source_layers", "target_layers"):
            object.__setattr__(self, side, tuple(dict.fromkeys(getattr(self, side))))
        object.__setattr__(self, "cause", self.cause or f"at {self.target_layers[0]}")

    @property
    def is_certain(self) -> bool:
        """Whether conversions that are right don't differ so."""
        return self.weight > naming.CONVERTED

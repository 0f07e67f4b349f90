"""The rows of a localization: what was measured at each pair, with the names of what computes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from conrepair.diagnosis.localization.align.alignment import Alignment
from conrepair.diagnosis.localization.align.matching import known_of
from conrepair.diagnosis.localization.judge.judgement import Judged
from conrepair.diagnosis.localization.result import LayerRow
from conrepair.formats.networks.network import Network
from conrepair.ground.graph.layer_graph import LayerGraph, Node


def rows_of(source: Network, target: Network, alignment: Alignment, judged: Sequence[Judged]) -> Iterator[LayerRow]:
    """A row of the layers' table for each boundary, in the given order.

    Args:
        source: The network that is right.
        target: The network in question.
        alignment: Of both.
        judged: All cuts.
    """
    pairs = alignment.pairs
    ours = frozenset({*(pair.source for pair in pairs), *source.graph.inputs})
    theirs = known_of(target.graph, pairs)
    for item in judged:
        pair = item.cut.pair
        sides = Side.of(source.graph, pair.source, ours), Side.of(target.graph, pair.target, theirs)
        yield row_of(item, *sides, order=source.graph.order[pair.source])


@dataclass(frozen=True)
class Side:
    """The layer and tensor of one model in a row of the table.

    Attributes:
        tensor: Name.
        node: What computes it; None where nothing is known of that.
        nodes: That compute it from the pairs in front.
    """

    tensor: str
    node: Node | None = None
    nodes: Sequence[Node] = ()

    @classmethod
    def of(cls, graph: LayerGraph, tensor: str, known: Set[str]) -> Side:
        """What a graph computes, from the tensors that are known."""
        return cls(tensor, graph.producers.get(tensor), graph.between(known, [tensor]))


def row_of(item: Judged, source: Side, target: Side, *, order: int) -> LayerRow:
    """The row of a boundary.

    Args:
        item: The cut.
        source: The side that is right.
        target: The side in question.
        order: Position in the network that is measured.
    """
    introduced, full = item.cut.introduced, item.cut.full
    return LayerRow(
        source_tensor=source.tensor,
        target_tensor=target.tensor,
        source_layer=source.tensor if source.node is None else source.node.layer,
        target_layer=target.tensor if target.node is None else target.node.layer,
        source_operator="" if source.node is None else source.node.native,
        target_operator="" if target.node is None else target.node.native,
        introduced_error=item.introduced,
        introduced_cosine=introduced.cosine,
        introduced_max_abs=introduced.max_abs,
        full_run_error=item.full,
        full_run_cosine=full.cosine,
        full_run_norm_ratio=full.norm_ratio,
        noise_floor=item.floor,
        inherited=item.inherited,
        mismatched=introduced.mismatched,
        layout=str(item.cut.pair.layout),
        confidence=item.cut.pair.confidence,
        guilty=item.guilty,
        order=order,
        source_nodes=tuple(node.name for node in source.nodes),
        target_nodes=tuple(node.name for node in target.nodes),
    )


def layers_of(network: Network, tensors: Sequence[str]) -> tuple[str, ...]:
    """What computes some tensors, as it's called in the file; inputs are left out.

    Args:
        network: That they are of.
        tensors: By name.
    """
    producers = network.graph.producers
    return tuple(dict.fromkeys(producers[name].layer for name in tensors if name in producers))

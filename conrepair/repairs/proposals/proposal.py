"""What every sort of proposal is given, and gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from conrepair.graph.layer_graph import LayerGraph, Node
from conrepair.localization.diagnosis.differences import RegionReading
from conrepair.localization.diagnosis.region import Region
from conrepair.localization.diagnosis.steps import Step
from conrepair.repairs.edits import Edit

__all__ = ["EditorNodes", "Proposal", "ProposalSetting", "Proposer", "RangeOf", "everywhere"]

Proposal = tuple[Edit, ...]


class RangeOf(Protocol):
    """Gives the smallest and the largest value of a tensor of the source, over all samples."""

    def __call__(self, tensor: str, *, of_others: bool = False) -> tuple[float, float]:
        """Of one; or as far as other samples' values are likely to lie."""
        ...


@dataclass(frozen=True)
class ProposalSetting:
    """A guilty piece, and where it can be edited.

    Attributes:
        region: Both sides of it.
        reading: How their steps are compared.
        in_editor: Finds nodes in the editor's graph.
        range_of: Gives the smallest and the largest value of a tensor of the source, over all samples.
        named: Layers of the target that diagnosis names, the likeliest first.
    """

    region: Region
    reading: RegionReading
    in_editor: EditorNodes
    range_of: RangeOf
    named: tuple[str, ...] = ()

    @property
    def paired(self) -> list[tuple[Step, Step]]:
        """Steps of both sides that belong together."""
        return [(ours, theirs) for ours, theirs in self.reading.pairs if ours is not None and theirs is not None]

    @property
    def missing(self) -> list[Step]:
        """Steps that only the source has."""
        return [ours for ours, theirs in self.reading.pairs if ours is not None and theirs is None]

    @property
    def extra(self) -> list[Step]:
        """Steps that only the target has."""
        return [theirs for ours, theirs in self.reading.pairs if ours is None and theirs is not None]


Proposer = Callable[[ProposalSetting], Iterator[Proposal]]
"""Proposes edits for a guilty piece; smaller ones first."""


class EditorNodes:
    """Finds a network's nodes, as localization cuts it, in the editor's graph, by what the file calls them."""

    def __init__(self, graph: LayerGraph) -> None:
        """Look into a graph.

        Args:
            graph: The editor's.
        """
        self._graph = graph
        self._by_layer: dict[str, list[Node]] = {}
        for node in graph.nodes:
            for name in {node.layer, node.name}:
                self._by_layer.setdefault(name, []).append(node)

    def of(self, node: Node) -> Node | None:
        """The editor's node; None where the file has no single one.

        Args:
            node: Of the network.
        """
        produced = [self._graph.producers[name] for name in node.outputs if name in self._graph.producers]
        candidates = [*produced, *self._by_layer.get(node.layer, ())]
        same = [item for item in candidates if item.op == node.op]
        return next(iter(same or candidates), None)

    def tensor(self, name: str) -> str | None:
        """A tensor, if the editor's graph has it."""
        return name if name in self._graph.tensors else None


def everywhere(propose: Proposer) -> Proposer:
    """A sort of proposals, and all of them together where they change several layers.

    Between layers that are wrong in the same way nothing comes out right, so they are one piece. Together is tried
    first where more than one difference explains an error; which of the edits are needed is found out later.

    Args:
        propose: Changes one layer with each proposal.
    """

    def proposed(setting: ProposalSetting) -> Iterator[Proposal]:
        singles = list(propose(setting))
        largest: dict[str, Proposal] = {}
        for proposal in singles:
            place = _place(proposal[0])
            if len(proposal) > len(largest.get(place, ())):
                largest[place] = proposal
        together = tuple(edit for proposal in largest.values() for edit in proposal)
        several = sum(item.is_certain for item in setting.reading.findings) > 1
        if len(largest) > 1 and several:
            yield together
        yield from singles
        if len(largest) > 1 and not several:
            yield together

    return proposed


def _place(edit: Edit) -> str:
    """What an edit changes: a node, or a tensor."""
    return str(getattr(edit, "node", None) or getattr(edit, "tensor", ""))

"""Proposals of a repair: what they're made of, and what they hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from conrepair.diagnosis.localization.faces.differences import RegionReading
from conrepair.diagnosis.localization.faces.region import Region
from conrepair.diagnosis.localization.faces.steps.steps import Step
from conrepair.diagnosis.repairs.edits import Edit, SetParameter
from conrepair.ground.data.tensor_spec import numpy_dtype
from conrepair.ground.graph.layer_graph import Array, LayerGraph, Node

Proposal = tuple[Edit, ...]


class RangeOf(Protocol):
    """Gives the smallest and the largest value of a tensor of the source, over all samples."""

    def __call__(self, tensor: str, *, of_others: bool = False) -> tuple[float, float]:
        """Of one; or as far as other samples' values are likely to lie."""
        ...


@dataclass(frozen=True)
class ProposalSetting:
    """A faulty segment, and where it can be edited.

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


# Numbers for what a target holds, in its shape and type.


def set_to(place: Node | None, role: str, values: Array) -> SetParameter | None:
    """Other numbers for a node.

    Args:
        place: In the editor's graph; None where that has no such node.
        role: Of the parameter.
        values: As many, of any shape.

    Returns:
        None where there's nothing that can hold them.
    """
    held = None if place is None else place.parameters.get(role)
    if place is None or held is None or values.size != math.prod(held.shape):
        return None
    # Not NumPy's contiguous copy, which gives a number an axis.
    return SetParameter(place.name, role, _as_held(np.asarray(values.reshape(held.shape), order="C"), held.dtype))


def _as_held(values: Array, dtype: str) -> Array:
    """One number that isn't zero, and finite ones, as the nearest that are so in a narrower type; others as they are.

    An epsilon of 1e-8 is 0 in float16, and divides nothing by nothing; a mask's -3.4e38 is infinite, and a row of it
    no number behind a softmax.

    Args:
        values: Of any shape.
        dtype: Of the target's file: "float16".
    """
    if values.dtype.kind != "f" or dtype != "float16" or not values.any():
        return values
    largest = np.finfo(np.float16).max
    if np.abs(values, where=np.isfinite(values), out=np.zeros_like(values)).max() > largest:
        return np.where(np.isfinite(values), values.clip(-largest, largest), values).astype(values.dtype)
    if values.size != 1:
        return values
    with np.errstate(over="ignore"):
        stored = values.astype(numpy_dtype(dtype))
    if stored.any():
        return values
    least = np.copysign(np.finfo(np.float16).smallest_subnormal, values)
    return np.asarray(least, values.dtype).reshape(values.shape)

"""What every sort of proposal is given, and gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from conrepair.localization.diagnosis.differences import RegionReading
from conrepair.localization.diagnosis.region import Region
from conrepair.repairs.editor_nodes import EditorNodes
from conrepair.repairs.edits import Edit

__all__ = ["Proposal", "ProposalSetting", "Proposer", "RangeOf"]

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


Proposer = Callable[[ProposalSetting], Iterator[Proposal]]
"""Proposes edits for a guilty piece; smaller ones first."""

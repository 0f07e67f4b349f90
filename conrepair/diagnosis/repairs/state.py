"""The state of a search: the proposals that were taken, and the localization with them."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from conrepair.diagnosis.localization.localize import Found
from conrepair.diagnosis.repairs.edits import Requantize, SetAttributes, SetParameter, gives_numbers
from conrepair.diagnosis.repairs.patch import Patch
from conrepair.diagnosis.repairs.proposals.proposal import Proposal
from conrepair.formats.models.model import Model

PARAMETER = "parameter "
"""In front of a parameter's name, among what a proposal reaches."""

VALUES = (SetAttributes, SetParameter, Requantize)
"""Edits that give what is there other values, and leave operators and their order."""


@dataclass(frozen=True)
class Taken:
    """A proposal that helped.

    Attributes:
        edits: What is left of it.
        gain: In words.
        left: What the source computes in its piece, where that isn't clean with it, only smaller.
        reach: What it may have changed: what the source computes in its piece, and parameters; empty where that
            isn't known.
    """

    edits: Proposal
    gain: str
    left: frozenset[str] = frozenset()
    reach: frozenset[str] = frozenset()

    @property
    def changes(self) -> frozenset[str]:
        """Of what it may reach, what its edits do change: parameters only where it gives others."""
        if any(map(gives_numbers, self.edits)):
            return self.reach
        return frozenset(name for name in self.reach if not name.startswith(PARAMETER))


@dataclass(frozen=True)
class Candidate:
    """A target with some proposals, written and not judged yet.

    Attributes:
        taken: Those, in the order in which they were found.
        model: The target as it came, or a copy in a folder of its own.
    """

    taken: tuple[Taken, ...]
    model: Model

    def remove(self) -> None:
        """Remove the copy."""
        shutil.rmtree(Path(self.model.path).parent)


@dataclass(frozen=True)
class RepairState(Candidate):
    """A target with some proposals that was judged.

    Attributes:
        found: What localization says of it.
    """

    found: Found


def patch_of(taken: Sequence[Taken]) -> Patch:
    """All edits, in order."""
    return Patch(tuple(edit for item in taken for edit in item.edits))

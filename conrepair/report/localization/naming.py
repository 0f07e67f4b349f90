"""What to call layers whose names no person reads: converters join the names of all that they fused."""

from __future__ import annotations

from collections.abc import Mapping

from conrepair.localization.result import Localization, LocatedFault

__all__ = ["FUSED", "names_of", "names_of_fault"]

FUSED = 48
"""Letters that a name has at most which is told as it is, where the source has another one."""

_MOST = 100  # faults, the guiltiest first: sentences name no more


def names_of_fault(fault: LocatedFault) -> Mapping[str, str]:
    """The source's name for the first of the target's layers, where that one's is too long to be read."""
    if not fault.source_layers or not fault.target_layers:
        return {}
    ours, theirs = fault.source_layers[0], fault.target_layers[0]
    return {theirs: ours} if len(theirs) > FUSED and len(ours) < len(theirs) else {}


def names_of(result: Localization) -> Mapping[str, str]:
    """The same of the faults that a sentence may name."""
    found: dict[str, str] = {}
    for fault in (*result.faults[:_MOST], *result.latent[:_MOST]):
        found |= names_of_fault(fault)
    return found

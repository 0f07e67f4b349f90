"""One fault for all regions that one cause makes guilty: what reads a lost tensor, all results of one layer."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from conrepair.localization.result import LocatedFault

__all__ = ["merge"]


def merge(faults: Sequence[tuple[LocatedFault, str]], apart: Collection[str] = ()) -> list[LocatedFault]:
    """Merge faults of the same kind and cause, that accuse the same layer first, or that differ at the same tensor.

    Args:
        faults: Each with its cause.
        apart: Layers that are at fault by themselves, though others are at the same tensor.

    Returns:
        The guiltiest first: by the error that they introduce.
    """
    by_cause = _grouped([(fault, (fault.kind, cause)) for fault, cause in faults])
    by_layer = _grouped(
        [(fault, (fault.kind, *(fault.target_layers[:1] or fault.source_layers))) for fault in by_cause]
    )
    own = ("".join(name for name in fault.target_layers[:1] if name in apart) for fault in by_layer)
    return _grouped(
        [(fault, (fault.kind, fault.source_tensor, layer)) for fault, layer in zip(by_layer, own, strict=True)]
    )


def _grouped(faults: Sequence[tuple[LocatedFault, tuple[str, ...]]]) -> list[LocatedFault]:
    groups: dict[tuple[str, ...], list[LocatedFault]] = {}
    for fault, key in faults:
        groups.setdefault(key, []).append(fault)
    merged = [_together(sorted(group, key=_error, reverse=True)) for group in groups.values()]
    return sorted(merged, key=_error, reverse=True)


def _together(group: Sequence[LocatedFault]) -> LocatedFault:
    first = group[0]
    if len(group) == 1:
        return first
    return replace(
        first,
        source_layers=_union([fault.source_layers for fault in group]),
        target_layers=_union([fault.target_layers for fault in group]),
        full_run_error=max(fault.full_run_error for fault in group),
        confidence=max(fault.confidence for fault in group),
        evidence=_union([fault.evidence for fault in group]),
    )


def _union(groups: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item for group in groups for item in group))


def _error(fault: LocatedFault) -> float:
    return fault.introduced_error

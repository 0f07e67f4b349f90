"""What a measured case is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Score", "score"]

_TOP = 3
_SIDES = ("target_layers", "source_layers")


@dataclass(frozen=True)
class Score:
    """Of a case with faults.

    Attributes:
        detected: Anything was found.
        first: The first layer of the first fault is one at fault.
        first_loosely: Any layer of the first fault is.
        top3: One of the first three layers that are named is, in the order of the faults and of the layers of each,
            in the source or in the target.
        top3_loosely: Any layer of one of the first three faults is.
        kind: The first fault (of several: the one that names the layer, for each) has the right kind.
        all_named: Each injected fault is named by some fault's layers.
        astray: Faults that name nothing that was injected.
    """

    detected: bool
    first: bool
    first_loosely: bool
    top3: bool
    top3_loosely: bool
    kind: bool
    all_named: bool
    astray: int


def score(injected: Sequence[Mapping[str, Any]], found: Sequence[Mapping[str, Any]]) -> Score:
    """Compare what was injected with what was found.

    Args:
        injected: Each with "kind", "target_layers", "source_layers".
        found: The guiltiest first, with the same.
    """
    strict = [any(_names(fault, truth, first=True) for truth in injected) for fault in found]
    loose = [any(_names(fault, truth, first=False) for truth in injected) for fault in found]
    return Score(
        detected=bool(found),
        first=strict[:1] == [True],
        first_loosely=loose[:1] == [True],
        top3=any(_ranked(found, truth) for truth in injected),
        top3_loosely=any(loose[:_TOP]),
        kind=bool(found) and all(_right_kind(truth, found, alone=len(injected) == 1) for truth in injected),
        all_named=all(any(_names(fault, truth, first=False) for fault in found) for truth in injected),
        astray=loose.count(False),
    )


def _names(fault: Mapping[str, Any], truth: Mapping[str, Any], *, first: bool) -> bool:
    stop = 1 if first else None
    return any(set(fault[side][:stop]) & set(truth[side]) for side in _SIDES)


def _ranked(found: Sequence[Mapping[str, Any]], truth: Mapping[str, Any]) -> bool:
    """Whether who reads the first three names reads that of a layer at fault."""
    named = {side: list(dict.fromkeys(name for fault in found for name in fault[side])) for side in _SIDES}
    return any(set(named[side][:_TOP]) & set(truth[side]) for side in _SIDES)


def _right_kind(truth: Mapping[str, Any], found: Sequence[Mapping[str, Any]], *, alone: bool) -> bool:
    if alone:
        return bool(found[0]["kind"] == truth["kind"])
    named = [fault for fault in found if _names(fault, truth, first=False)]
    return any(fault["kind"] == truth["kind"] for fault in named)

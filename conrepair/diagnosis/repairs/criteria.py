"""When a candidate is better: by its own piece, as pieces that are fed the source's values don't depend on others."""

from __future__ import annotations

import math
from collections.abc import Sequence

from conrepair.diagnosis.localization.localize import Found
from conrepair.diagnosis.localization.located import Guilty
from conrepair.diagnosis.repairs.state import PARAMETER

_NO_FURTHER = 1.01  # times an error that it may grow by without an edit that did nothing: rounding


def source_of(piece: Guilty) -> str:
    """The source's tensor at the end of a piece, which it's known by."""
    return piece.judged.cut.pair.source


def guiltiest(found: Found) -> list[Guilty]:
    """The pieces at fault, the one that introduces most first."""
    return sorted(found.guilty, key=lambda piece: -piece.judged.introduced)


def error_of(found: Found) -> float:
    """Of the outputs; infinite where it's no number."""
    error = found.result.output_error
    return math.inf if math.isnan(error) else error


def computed(piece: Guilty) -> frozenset[str]:
    """What the source computes in a piece, but for what follows from sizes alone: many pieces read that."""
    inside = {name for node in piece.region.source.nodes for name in node.outputs}
    return frozenset(inside - piece.region.source.graph.unfed) | {source_of(piece)}


def reach(piece: Guilty) -> frozenset[str]:
    """What an edit of a piece may change: what's computed in it, and parameters that others may share."""
    shared = {
        f"{PARAMETER}{parameter.name}"
        for node in piece.region.target.nodes
        for parameter in node.parameters.values()
        if parameter.name
    }
    return computed(piece) | shared


def extent(found: Found) -> frozenset[str]:
    """The operators of the source in all faulty segments."""
    return frozenset().union(*map(computed, found.guilty))


def unplaced(found: Found) -> int:
    """Faults that no piece explains: outputs that are lost, or have another shape."""
    placed = {piece.judged.cut.pair.target for piece in found.guilty}
    ends = [fault.target_tensor for fault in found.result.faults]
    # Several layers in a row may be at fault in one piece.
    told = len({name for name in ends if name in placed}) + sum(name not in placed for name in ends)
    return max(told - len(found.guilty), 0)


def introduced(found: Found, piece: Guilty) -> float | None:
    """The error that a segment of a target adds; None where that isn't measured any more."""
    rows = [row for row in found.result.layers if row.source_tensor == source_of(piece)]
    return min((row.introduced_error for row in rows), default=None)


def fixes(again: Found, found: Found, piece: Guilty | None) -> bool:
    """Whether a candidate's segment isn't faulty any more.

    What is guilty elsewhere, and wasn't, was hidden by what is fixed: an edit isn't to blame for it. What is guilty
    within the piece is what is left of it.

    Args:
        again: With the candidate.
        found: Without it.
        piece: That it's for; None for one that is for outputs.
    """
    guilty, known = sources_of(again.guilty), sources_of(found.guilty)
    if piece is None:
        return len(again.result.faults) < len(found.result.faults) and guilty <= known
    if source_of(piece) in guilty or unplaced(again) > unplaced(found):
        return False
    others = [other for other in again.guilty if source_of(other) not in known]
    if any(computed(other) & computed(piece) for other in others):
        return False
    now = introduced(again, piece)
    if now is not None and now < piece.judged.introduced:
        return True
    # It can't be told from its surroundings any more: these must be better.
    if others or len(again.result.faults) > len(found.result.faults):
        return False
    return error_of(again) < error_of(found) or (bool(again.result.faults) and error_of(again) <= error_of(found))


def is_as_good(fewer: Found, found: Found) -> bool:
    """Whether a result with an edit less is no worse: clean, or no more at fault, and the outputs no further off."""
    if not fewer.result.faults:
        return fewer.result.is_right or not found.result.is_right
    no_more = len(fewer.result.faults) <= len(found.result.faults) and extent(fewer) <= extent(found)
    return no_more and error_of(fewer) <= _NO_FURTHER * error_of(found)


def sources_of(pieces: Sequence[Guilty]) -> set[str]:
    """The source's tensors at the ends of pieces."""
    return set(map(source_of, pieces))

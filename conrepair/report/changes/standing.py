"""How a target stands in a run: its verdict, its faults and its figures, as it is after a repair."""

from __future__ import annotations

from dataclasses import dataclass

from conrepair.evaluate.verdict import Verdict
from conrepair.localization.result import Localization, LocatedFault
from conrepair.metrics.statistics import TimeStatistics
from conrepair.report.result import AuditResult, Row
from conrepair.report.row_paths import OF_FILES, name_of, target_rows, without_device, word_of

_FAILED = len(Verdict)  # behind the worst verdict: nothing can be said of it

Key = tuple[str, str, str]


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A target.

    Attributes:
        name: As a person reads it.
        backend: Where it ran.
        word: Its verdict, or what there is in its place.
        rank: Of that from best to worst; None where it wasn't judged.
        reason: In words.
        faults: By kind and layer (the source's name of it, which other conversions have too); None where it's wrong
            and layers weren't looked at.
        answers: How many differ, and of how many; None without.
        error: Relative L2 of the worst output, and what rounding explains of it; None without.
        accuracy: Right answers and labelled samples; None without.
        times: Per sample; None without.
    """

    name: str
    backend: str
    word: str
    rank: int | None
    reason: str
    faults: dict[tuple[str, str], LocatedFault] | None
    answers: tuple[int, int] | None
    error: tuple[float, float] | None
    accuracy: tuple[int, int] | None
    times: TimeStatistics | None


def standings(result: AuditResult) -> dict[Key, Standing]:
    """All targets by model, conversion and backend.

    Where files were named and there's one target, it's the target, whatever its file is called: so a conversion is
    held against the one before it.

    Args:
        result: Of any verb, or of an audit.
    """
    rows = target_rows(result)
    if result.kind in OF_FILES and rows:
        return {("", "", ""): _standing(rows[-1], result)}
    return {(row.model, row.conversion, row.backend): _standing(row, result) for row in rows}


def _standing(row: Row, result: AuditResult) -> Standing:
    found, done = row.localized.result, row.repaired.result
    repaired = done is not None and bool(done.edits)
    if done is not None and repaired:
        found = done.after
    by_layers = found is not None and (repaired or result.kind in {"localize", "repair"})
    verdict, reason = (found.verdict, found.reason) if found is not None and by_layers else (row.verdict, row.reason)
    worst = None if row.comparison is None or repaired else row.comparison.worst
    answers = None if worst is None else worst.answers
    return Standing(
        name=name_of(row, result) + (" (repaired)" if repaired else ""),
        backend=row.backend,
        word=word_of(row, verdict),
        rank=_rank(row, verdict),
        reason=reason,
        faults=_faults(found, verdict),
        answers=None if answers is None else (answers.top1_differs, answers.samples),
        error=None if worst is None else (worst.error.relative_l2, worst.floor),
        accuracy=None if repaired else row.ran.accuracy,
        times=None if repaired else row.ran.times,
    )


def _faults(found: Localization | None, verdict: Verdict | None) -> dict[tuple[str, str], LocatedFault] | None:
    if found is not None:
        return {_place(fault): fault for fault in found.faults}
    return {} if verdict is not None and verdict.is_right else None


def _rank(row: Row, verdict: Verdict | None) -> int | None:
    if verdict is not None:
        return verdict.severity
    return None if row.problem is None or without_device(row) else _FAILED


def _place(fault: LocatedFault) -> tuple[str, str]:
    layers = fault.source_layers or fault.target_layers or (fault.target_tensor,)
    return str(fault.kind), layers[0]

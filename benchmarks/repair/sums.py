"""Rows, added up."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from benchmarks.repair.rows import Row

__all__ = ["Sums", "sums"]


@dataclass(frozen=True)
class Sums:
    """Of some rows. Shares are None where nothing counts.

    Attributes:
        single: Cases with one fault.
        repaired: Share of those, as for the next ones: see `Score`.
        partly: How many of those.
        left: How many of those.
        failed: How many repairs failed, of all.
        placed: Share of the repaired ones of those, where that's known.
        placed_of: How many of those it's known of.
        minimal: Share of the repaired ones of those, where that's known.
        minimal_of: How many of those it's known of.
        double: Cases with two faults.
        double_repaired: Share of those.
        triple: Cases with three faults.
        triple_repaired: Share of those.
        worse: Of all with faults, how many.
        changed: Cases with faults whose target was changed for the better.
        written: Share of those whose file is verified.
        kept: Share of changed quantized targets that stayed so.
        correct: Cases without a fault.
        touched: How many of those were touched.
        dishonest: How many results claim what isn't so.
        tried: Median of candidates, of cases with faults.
        edits: Median of the repaired ones' edits.
        localize_seconds: Median of a localization alone, of cases with faults.
        repair_seconds: Median of the whole repair.
        ratio: Median of the one over the other.
        longest: The longest repair in seconds.
    """

    single: int
    repaired: float | None
    partly: int
    left: int
    failed: int
    placed: float | None
    placed_of: int
    minimal: float | None
    minimal_of: int
    double: int
    double_repaired: float | None
    triple: int
    triple_repaired: float | None
    worse: int
    changed: int
    written: float | None
    kept: float | None
    correct: int
    touched: int
    dishonest: int
    tried: float | None
    edits: float | None
    localize_seconds: float | None
    repair_seconds: float | None
    ratio: float | None
    longest: float | None


def sums(rows: Iterable[Row]) -> Sums:
    """Add rows up; what has another precision on purpose doesn't count here."""
    asked = [row for row in rows if row.counts]
    single, double, triple = ([row for row in asked if row.case.count == count] for count in (1, 2, 3))
    faulty, correct = [*single, *double, *triple], [row for row in asked if not row.case.count]
    repaired = [row for row in single if _is(row, "repaired")]
    placed = [row for row in repaired if row.score.placed is not None]
    known = [row for row in repaired if row.score.minimal is not None]
    changed = [row for row in faulty if _is(row, "repaired") or _is(row, "partly")]
    measured = [row for row in faulty if row.status == "measured"]
    times = [(row.result["localize_seconds"], row.result["repair_seconds"]) for row in measured]
    return Sums(
        len(single),
        _share(single, lambda row: _is(row, "repaired")),
        sum(_is(row, "partly") for row in single),
        sum(_is(row, "left") for row in single),
        sum(row.status == "failed" for row in asked),
        _share(placed, lambda row: row.score.placed is True),
        len(placed),
        _share(known, lambda row: row.score.minimal is True),
        len(known),
        len(double),
        _share(double, lambda row: _is(row, "repaired")),
        len(triple),
        _share(triple, lambda row: _is(row, "repaired")),
        sum(_is(row, "worse") for row in faulty),
        len(changed),
        _share(changed, lambda row: row.score.written is True),
        _share([row for row in faulty if row.score.kept is not None], lambda row: row.score.kept is True),
        len(correct),
        sum(_is(row, "touched") for row in correct),
        sum(not row.score.honest for row in asked),
        _median([row.result["tried"] for row in measured if "tried" in row.result]),
        _median([len(row.result["edits"]) for row in repaired]),
        _median([one for one, _ in times]),
        _median([two for _, two in times]),
        _median([two / one for one, two in times]),
        max((two for _, two in times), default=None),
    )


def _is(row: Row, outcome: str) -> bool:
    return row.score.outcome == outcome


def _share(rows: Sequence[Row], holds: Callable[[Row], bool]) -> float | None:
    return sum(map(holds, rows)) / len(rows) if rows else None


def _median(numbers: Sequence[float]) -> float | None:
    return statistics.median(numbers) if numbers else None

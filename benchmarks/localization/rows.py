"""What became of a case of localization, and sums of many."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from benchmarks.common.cases import CORRECT, INTENDED, SEVERAL
from benchmarks.common.rows import CaseRow
from benchmarks.localization.scoring import Score, score

__all__ = ["Row", "Sums", "sums"]


@dataclass(frozen=True)
class Row(CaseRow):
    """See `CaseRow`."""

    @property
    def counts(self) -> bool:
        """Whether localization was asked, and nothing is wrong but what was injected."""
        return self.status in {"measured", "failed"} and not self.off

    @property
    def score(self) -> Score | None:
        """Of a measured one with faults."""
        if not self.case.count or self.status != "measured":
            return None
        return score(self.result["injected"], self.result["found"])

    @property
    def false_alarm(self) -> bool:
        """Whether a correct target is called faulty."""
        return self.case.group in {CORRECT, INTENDED} and self.counts and bool(self.result.get("found"))

    @property
    def missed(self) -> bool:
        """Whether an injected fault isn't named first, with its kind (of several: isn't named)."""
        if not self.case.count or not self.counts:
            return False
        if self.score is None:
            return True
        if self.case.group == SEVERAL:
            return not self.score.all_named
        return not (self.score.first and self.score.kind)


@dataclass(frozen=True)
class Sums:
    """Of some rows. Shares are None where nothing counts.

    Attributes:
        faulty: Cases with one fault that were asked.
        detected: Share of those, as for the next ones: see `Score`.
        several: Cases with more faults.
        all_named: Share of those.
        correct: Cases without.
        false_alarms: How many of those.
        astray: Faults named beside an injected one, a case.
        failed: How often localization failed.
        seconds: Median of a localization.
        longest: The longest.
    """

    faulty: int
    detected: float | None
    first: float | None
    first_loosely: float | None
    top3: float | None
    top3_loosely: float | None
    kind: float | None
    several: int
    all_named: float | None
    correct: int
    false_alarms: int
    astray: float | None
    failed: int
    seconds: float | None
    longest: float | None


def sums(rows: Iterable[Row]) -> Sums:
    """Add rows up."""
    asked = [row for row in rows if row.counts]
    single = [row for row in asked if row.case.count == 1]
    several = [row for row in asked if row.case.count > 1]
    correct = [row for row in asked if not row.case.count]
    seconds = [float(row.result["seconds"]) for row in asked if row.result]
    scored = [row.score for row in (*single, *several) if row.score is not None]
    return Sums(
        len(single),
        *(_share(single, name) for name in ("detected", "first", "first_loosely", "top3", "top3_loosely", "kind")),
        len(several),
        _share(several, "all_named"),
        len(correct),
        sum(row.false_alarm for row in correct),
        statistics.mean(item.astray for item in scored) if scored else None,
        sum(row.status == "failed" for row in asked),
        statistics.median(seconds) if seconds else None,
        max(seconds, default=None),
    )


def _share(rows: Sequence[Row], name: str) -> float | None:
    """Of rows for which a score holds; one that failed doesn't."""
    holds: Callable[[Row], bool] = lambda row: row.score is not None and bool(getattr(row.score, name))  # noqa: E731
    return sum(map(holds, rows)) / len(rows) if rows else None

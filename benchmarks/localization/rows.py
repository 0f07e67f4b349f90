"""Results of cases, one row each."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.common.cases import CORRECT, INTENDED, SEVERAL, Case
from benchmarks.localization.scoring import Score, score
from conrepair.runtime.workers import Outcome, Success

__all__ = ["Row", "Sums", "from_json", "row_of", "sums"]


@dataclass(frozen=True)
class Row:
    """A case and what became of it.

    Attributes:
        case: What was done.
        status: "measured"; "no place" for the fault; "not injected": putting it in failed; "no model" came out of a
            converter; "unverified": a conversion that was meant to be correct isn't; "failed": localization did.
        words: More of it.
        result: Of a measured one, from `trial.run`.
        score: Of a measured one with faults.
    """

    case: Case
    status: str
    words: str = ""
    result: dict[str, Any] = dataclasses.field(default_factory=dict)
    score: Score | None = None

    @property
    def counts(self) -> bool:
        """Whether localization was asked."""
        return self.status in {"measured", "failed"}

    @property
    def kind(self) -> str:
        """Of the injected fault, where there's one."""
        injected = self.result.get("injected", [])
        return str(injected[0]["kind"]) if len(injected) == 1 else ""

    @property
    def false_alarm(self) -> bool:
        """Whether a correct target is called faulty."""
        return self.case.group in {CORRECT, INTENDED} and bool(self.result.get("found"))

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

    def as_json(self) -> dict[str, Any]:
        """All of it, as plain values."""
        case = dataclasses.asdict(self.case) | {"name": self.case.name}
        case["faults"] = case["faults"][: case["count"]]
        scored = None if self.score is None else dataclasses.asdict(self.score)
        return {"case": case, "status": self.status, "words": self.words, "score": scored, **self.result}


def from_json(value: dict[str, Any]) -> Row:
    """What `Row.as_json` was."""
    rest = dict(value)
    told = rest.pop("case")
    fields = {field.name for field in dataclasses.fields(Case)}
    case = Case(
        **{key: tuple(item) if isinstance(item, list) else item for key, item in told.items() if key in fields}
    )
    scored = rest.pop("score")
    return Row(case, rest.pop("status"), rest.pop("words"), rest, None if scored is None else Score(**scored))


def row_of(case: Case, outcome: Outcome | str) -> Row:
    """What a worker's outcome says about a case; words, where its models couldn't be made."""
    if isinstance(outcome, str):
        return Row(case, "no model", outcome)
    if not isinstance(outcome, Success):
        words = [str(outcome), *outcome.traceback.strip().splitlines()[-3:-1]]
        return Row(case, "failed", " | ".join(line.strip() for line in words))
    value = dict(outcome.value)
    status, words = value.pop("status"), value.pop("words")
    scored = score(value["injected"], value["found"]) if case.count and status == "measured" else None
    return Row(case, status, words, value, scored)


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

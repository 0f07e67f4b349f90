"""What is said of targets with and without faults: rows, sums and tables."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.common.bounds import interval
from benchmarks.common.rows import CaseRow, disagreements
from benchmarks.localization.scoring import Score, score

__all__ = ["JudgedRow", "JudgedSums", "judged_sums", "judged_tables", "listed"]

_FAULTY, _UNDECIDED = "faulty", "undecided"
_WORDS, _SHOWN = 160, 3
_HEADER = (
    "faulty", "called faulty", "undecided", "passed", "by compare", "first", "in 3", "all places",
    "named", "right", "accused", "undecided", "at most", "failed", "seconds",
)  # fmt: skip


@dataclass(frozen=True)
class JudgedRow(CaseRow):
    """See `CaseRow`."""

    @property
    def faulty(self) -> bool:
        """Whether the target has a fault."""
        return bool(self.case.count)

    @property
    def counts(self) -> bool:
        """Whether localization was asked."""
        return self.status in {"measured", "failed"}

    @property
    def verdict(self) -> str:
        """Of localization; "failed" where that gave none."""
        return str(self.result.get("verdict", self.status))

    @property
    def score(self) -> Score | None:
        """Of a measured one with a fault."""
        if not self.faulty or self.status != "measured":
            return None
        return score(self.result["injected"], self.result["found"])

    @property
    def wrong(self) -> bool:
        """Whether it isn't as it should be."""
        return self.counts and ((self.verdict == _FAULTY) != self.faulty or self.verdict in {_UNDECIDED, "failed"})


@dataclass(frozen=True)
class JudgedSums:
    """Of some rows; shares are None where nothing counts.

    Attributes:
        faulty: Cases with a fault.
        detected: How many of them are called faulty.
        doubted: How many undecided.
        passed: How many equivalent or noise.
        compared: How many are called faulty by `compare`.
        first: Share for which the first layer named is at fault.
        top3: Share for which one of the first three named is.
        all_named: Share for which each place is named.
        named: Pieces named, the median.
        right: Cases without a fault.
        accused: How many of them are called faulty.
        undecided: How many undecided.
        failed: How often localization failed, of both.
        seconds: Median of a localization.
    """

    faulty: int
    detected: int
    doubted: int
    passed: int
    compared: int
    first: float | None
    top3: float | None
    all_named: float | None
    named: float | None
    right: int
    accused: int
    undecided: int
    failed: int
    seconds: float | None


def judged_sums(rows: Iterable[JudgedRow]) -> JudgedSums:
    """Add rows up."""
    asked = [row for row in rows if row.counts]
    faulty, right = [row for row in asked if row.faulty], [row for row in asked if not row.faulty]
    measured = [row for row in asked if row.status == "measured"]
    scores = [row.score for row in faulty]

    def share(name: str) -> float | None:
        return sum(bool(item and getattr(item, name)) for item in scores) / len(scores) if scores else None

    def count(group: Sequence[JudgedRow], *verdicts: str) -> int:
        return sum(row.verdict in verdicts for row in group)

    found = [len(row.result["found"]) for row in faulty if row.status == "measured"]
    return JudgedSums(
        len(faulty),
        count(faulty, _FAULTY),
        count(faulty, _UNDECIDED),
        count(faulty, "equivalent", "noise"),
        sum(row.verdicts.get("compare") == _FAULTY for row in faulty),
        share("first"),
        share("top3"),
        share("all_named"),
        statistics.median(found) if found else None,
        len(right),
        count(right, _FAULTY),
        count(right, _UNDECIDED),
        sum(row.status == "failed" for row in asked),
        statistics.median(float(row.result["seconds"]) for row in measured) if measured else None,
    )


def judged_tables(rows: Sequence[JudgedRow], keys: dict[str, Callable[[JudgedRow], str]]) -> str:
    """Tables of sums, then what isn't as it should be.

    "at most": what share of right targets is accused or undecided, at most, with 97.5 % confidence. "passed": called
    equivalent or noise.

    Args:
        rows: Of a benchmark.
        keys: What rows are summed up by, with the title of the table; "" gives a row no place in it.
    """
    parts = [_table("", rows, lambda _: "all"), _table("group", rows, lambda row: row.case.group)]
    parts += [_table(title, rows, key) for title, key in keys.items()]
    statuses = sorted({row.status for row in rows})
    parts.append("; ".join(f"{sum(row.status == status for row in rows)} {status}" for status in statuses) + "\n")
    parts.append(disagreements(rows))
    parts += listed(
        "Right targets that are accused or undecided", [row for row in rows if row.wrong and not row.faulty]
    )
    parts += listed("Faults that are passed or undecided", [row for row in rows if row.wrong and row.faulty])
    named = [row for row in rows if row.score and not row.wrong and not row.score.first]
    parts += listed("Faults whose first name is another layer's", named)
    parts += listed("Not verified", [row for row in rows if row.status in {"unverified", "no model", "not injected"}])
    return "\n".join(parts)


def _table(title: str, rows: Sequence[JudgedRow], key: Callable[[JudgedRow], str]) -> str:
    lines = [f"| {title} | {' | '.join(_HEADER)} |", f"|---|{'---:|' * len(_HEADER)}"]
    for name in sorted({key(row) for row in rows} - {""}):
        cells = _cells(judged_sums(row for row in rows if key(row) == name))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cells(item: JudgedSums) -> list[str]:
    def share(value: float | None) -> str:
        return "" if value is None else f"{100 * value:.1f} %"

    blank = not item.faulty
    faulty = [item.faulty, item.detected, item.doubted, item.passed, item.compared]
    upper = interval(item.accused + item.undecided, item.right)[1] if item.right else None
    return [
        *("" if blank and place else str(number) for place, number in enumerate(faulty)),
        *map(share, (item.first, item.top3, item.all_named)),
        "" if item.named is None else f"{item.named:g}",
        *(
            "" if not item.right and place else str(n)
            for place, n in enumerate((item.right, item.accused, item.undecided))
        ),
        share(upper),
        str(item.failed),
        "" if item.seconds is None else f"{item.seconds:.1f}",
    ]


def listed(title: str, rows: Sequence[CaseRow]) -> Iterator[str]:
    """Rows one by one, under a title; nothing where there are none."""
    if rows:
        yield "\n".join([f"## {title} ({len(rows)})", "", *(line for row in rows for line in _told(row)), ""])


def _told(row: CaseRow) -> Iterator[str]:
    numbers = {name: row.result.get(name) for name in ("effect", "rounding", "output_error")}
    told = ", ".join(f"{name} {value:.1e}" for name, value in numbers.items() if value is not None)
    yield f"- `{row.case.name}`: {row.result.get('verdict', row.status)}; {told}"
    if row.words:
        yield f"  - {row.words[:_WORDS]}"
    for fault in row.result.get("injected", [])[:1]:
        yield f"  - injected: {fault['words'][:_WORDS]} ({', '.join(fault['target_layers'][:_SHOWN])})"
    for fault in row.result.get("found", [])[:_SHOWN]:
        names = " | ".join(", ".join(fault[side][:_SHOWN]) for side in ("target_layers", "source_layers"))
        yield f"  - found {fault['kind']}: {names}: {'; '.join(fault['evidence'])[:_WORDS]}"

"""Tables of what became of cases."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence

from benchmarks.common.bounds import interval
from benchmarks.common.in_process import VERBS
from benchmarks.families.rows import FamilyRow

__all__ = ["tables", "told"]

_WORST, _WORDS = 10, 220
_FAULTY = (
    "faults",
    "passed",
    "at most",
    "undecided",
    "named",
    "at least",
    "kind",
    "repaired",
    "at least",
    "to rounding",
)
_RIGHT = ("right", "accused", "at most", "undecided")
_BOTH = ("disagree", "failed", "oversold", "below the floor", "seconds")


def tables(rows: Sequence[FamilyRow], worst: int = _WORST) -> str:
    """Sums by architecture, by route, by data, then the worst cases with what was said.

    Args:
        rows: Of the benchmark.
        worst: How many are listed.
    """
    parts = [
        _table("", rows, lambda _: "all"),
        _table("architecture", rows, lambda row: row.case.model),
        _table("route", rows, lambda row: row.case.base),
        _table(
            "inputs", rows, lambda row: "" if not row.counts else "given" if row.result.get("data") else "made up"
        ),
        "; ".join(f"{sum(row.status == status for row in rows)} {status}" for status in sorted(_statuses(rows)))
        + "\n",
    ]
    bad = sorted((row for row in rows if row.badness), key=lambda row: -row.badness)
    parts += [f"## The worst {min(worst, len(bad))} of {len(bad)}", "", *(told(row) for row in bad[:worst]), ""]
    unfit = [row for row in rows if row.status in {"unverified", "no model"}]
    parts += [f"- `{row.case.name}`: {row.status}: {row.words[:_WORDS]}" for row in unfit]
    return "\n".join(parts)


def _statuses(rows: Sequence[FamilyRow]) -> set[str]:
    return {row.status for row in rows}


def _table(title: str, rows: Sequence[FamilyRow], key: Callable[[FamilyRow], str]) -> str:
    header = (*_FAULTY, *_RIGHT, *_BOTH)
    lines = [f"| {title} | {' | '.join(header)} |", f"|---|{'---:|' * len(header)}"]
    names = sorted({key(row) for row in rows} - {""})
    lines += [f"| {name} | {' | '.join(_cells([row for row in rows if key(row) == name]))} |" for name in names]
    return "\n".join(lines) + "\n"


def _cells(rows: Sequence[FamilyRow]) -> list[str]:
    faulty = [row for row in rows if row.counts and row.faulty]
    right = [row for row in rows if row.counts and not row.faulty]
    both = [*faulty, *right]

    def low(count: int, cases: int) -> str:
        return f"{100 * interval(count, cases)[0]:.0f} %" if cases else ""

    def high(count: int, cases: int) -> str:
        return f"{100 * interval(count, cases)[1]:.0f} %" if cases else ""

    def share(count: int, cases: int) -> str:
        return f"{100 * count / cases:.0f} %" if cases else ""

    passed, accused = sum(row.passed for row in faulty), sum(row.accused for row in right)
    named, repaired = sum(row.named for row in faulty), sum(row.repaired for row in faulty)
    seconds = [row.seconds for row in both if row.seconds]
    return [
        str(len(faulty)),
        str(passed),
        high(passed, len(faulty)),
        str(sum(row.doubted for row in faulty)),
        share(named, len(faulty)),
        low(named, len(faulty)),
        share(sum(bool(row.score and row.score.kind) for row in faulty), len(faulty)),
        share(repaired, len(faulty)),
        low(repaired, len(faulty)),
        share(sum(row.to_rounding for row in faulty), len(faulty)),
        str(len(right)),
        str(accused),
        high(accused, len(right)),
        str(sum(row.doubted for row in right)),
        str(sum(row.agrees is False for row in both)),
        str(sum(row.failed for row in both)),
        str(sum(row.oversold for row in faulty)),
        str(sum(row.status == "below the floor" for row in rows)),
        f"{statistics.median(seconds):.0f}" if seconds else "",
    ]


def told(row: FamilyRow) -> str:
    """A case with what was said of it."""
    return "\n".join(_lines(row))


def _lines(row: FamilyRow) -> Iterator[str]:
    result = row.result
    effect, rounding = result.get("effect"), result.get("rounding")
    size = "" if effect is None else f"; answers differ by {effect:.1e}"
    size += "" if rounding is None else f", without the fault by {rounding:.1e}"
    yield f"- `{row.case.name}`{size}{'' if result.get('data', True) else '; without data'}"
    if row.words:
        yield f"  - {row.status}: {row.words[:_WORDS]}"
    for verb in VERBS:
        if (said := result.get(verb)) is None:
            continue
        words = said.get("reason") or said["words"] or "; ".join(said.get("edits", []))
        verdict = result["said"][verb]
        yield f"  - {verb}, exit {said['exit']}: {verdict}: {' '.join(words.split())[:_WORDS]}"
    for fault in result.get("injected", [])[:1]:
        yield f"  - at fault ({fault['kind']}): {', '.join(fault['target_layers'][:4])}"
    for fault in result.get("localize", {}).get("found", [])[:2]:
        layers = " | ".join(", ".join(fault[side][:2]) for side in ("target_layers", "source_layers"))
        yield f"  - named ({fault['kind']}): {layers}: {'; '.join(fault['evidence'])[:_WORDS]}"
    if (refused := result.get("repair", {}).get("refused")) and not row.repaired:
        yield f"  - refused: {'; '.join(refused)[:_WORDS]}"
    if (after := result.get("after")) is not None:
        yield f"  - the file that was written differs by {after:.1e}, as it came by {result['before']:.1e}"

"""The benchmark's answer as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from benchmarks.common.bounds import at_least, at_most
from benchmarks.common.rows import disagreements
from benchmarks.localization.rows import Row, Sums, sums

__all__ = ["report"]

_HEADER = (
    "faulty", "detected", "first", "(loosely)", "in 3", "(loosely)", "kind", "several", "all named",
    "correct", "false alarms", "astray", "failed", "seconds", "longest",
)  # fmt: skip
_WORDS, _LAYERS = 200, 3


def report(rows: Sequence[Row]) -> str:
    """Tables of sums, then everything that isn't as it should be.

    "first": the first layer of the first fault is one that the injection names; "in 3": one of the first three layers
    named is; "loosely": any layer of the first fault, or of the first three. "astray": faults named that name nothing
    injected, a case.
    """
    parts = [_reached(sums(rows)), _table("", rows, lambda _: "all")]
    parts.append(_table("model", rows, lambda row: row.case.model))
    parts.append(_table("group, format", rows, lambda row: f"{row.case.group}, {row.case.format}"))
    parts.append(_table("kind", [row for row in rows if row.kind], lambda row: row.kind))
    parts += [disagreements(rows), _off(rows), *_lists(rows)]
    return "\n".join(part for part in parts if part)


def _reached(item: Sums) -> str:
    """The whole, with bounds by Clopper and Pearson: 97.5 % confidence on the worse side."""
    lines = ["| | wanted | reached | of | 97.5 % bound |", "|---|---|---:|---:|---:|"]
    lines.append(
        f"| false alarms on correct conversions | 0 | {item.false_alarms} | {item.correct} | at most "
        f"{at_most(item.false_alarms, item.correct)} |"
    )
    shares = (
        ("detected", "99 %", item.detected, item.faulty),
        ("guilty layer first", "95 %", item.first, item.faulty),
        ("among the first three", "99 %", item.top3, item.faulty),
        ("kind", "90 %", item.kind, item.faulty),
        ("two or three faults at once, all named", "90 %", item.all_named, item.several),
    )
    for name, wanted, share, count in shares:
        if share is not None:
            bound = at_least(share, count)
            lines.append(f"| {name} | {wanted} | {100 * share:.1f} % | {count} | at least {bound} |")
    return "\n".join(lines) + "\n"


def _table(title: str, rows: Sequence[Row], key: Callable[[Row], str]) -> str:
    lines = [f"| {title} | {' | '.join(_HEADER)} |", f"|---|{'---:|' * len(_HEADER)}"]
    names = dict.fromkeys(map(key, rows))
    lines += [f"| {name} | {' | '.join(_cells(sums(row for row in rows if key(row) == name)))} |" for name in names]
    return "\n".join(lines) + "\n"


def _cells(item: Sums) -> list[str]:
    def share(value: float | None) -> str:
        return "" if value is None else f"{100 * value:.1f} %"

    def number(value: float | None, digits: int) -> str:
        return "" if value is None else f"{value:.{digits}f}"

    shares = [item.detected, item.first, item.first_loosely, item.top3, item.top3_loosely, item.kind]
    return [
        str(item.faulty),
        *map(share, shares),
        str(item.several),
        share(item.all_named),
        str(item.correct),
        str(item.false_alarms),
        number(item.astray, 2),
        str(item.failed),
        number(item.seconds, 1),
        number(item.longest, 1),
    ]


def _off(rows: Sequence[Row]) -> str:
    """What is said of targets that a converter made wrong by itself."""
    chosen = [row for row in rows if row.off]
    if not chosen:
        return ""
    lines = [f"## Off by itself ({len(chosen)})", "", "| case | what's wrong | verdict | output error | found |"]
    lines.append("|---|---|---|---:|---|")
    for row in chosen:
        found = "; ".join(f"{item['kind']}: {', '.join(item['target_layers'][:1])}" for item in row.result["found"])
        error = row.result["output_error"]
        told = "infinite" if error is None else f"{error:.1e}"
        cells = row.case.name, row.off[:_WORDS], row.result["verdict"], told, found[:_WORDS]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _lists(rows: Sequence[Row]) -> Iterator[str]:
    sections: dict[str, Callable[[Row], bool]] = {
        "False alarms": lambda row: row.false_alarm,
        "Missed, or of another kind": lambda row: row.missed,
        "Failed": lambda row: row.status == "failed" and not row.case.count,
        "Models that didn't come out": lambda row: row.status in {"no model", "not injected"},
    }
    for title, condition in sections.items():
        chosen = [row for row in rows if condition(row)]
        if chosen:
            yield "\n".join([f"## {title} ({len(chosen)})", "", *(line for row in chosen for line in _told(row)), ""])


def _told(row: Row) -> Iterator[str]:
    yield f"- `{row.case.name}`: {_judged(row)}".rstrip(": ")
    if row.words:
        yield f"  - {row.words[:_WORDS]}"
    for fault in row.result.get("injected", []):
        effect = "infinite" if fault["effect"] is None else f"{fault['effect']:.1e}"
        layers = ", ".join(fault["target_layers"][:_LAYERS])
        yield f"  - injected {fault['kind']}, effect {effect}: {fault['words'][:_WORDS]} ({layers})"
    for fault in row.result.get("found", [])[:_LAYERS]:
        names = (", ".join(fault[side][:_LAYERS]) for side in ("target_layers", "source_layers"))
        evidence = "; ".join(fault["evidence"])[:_WORDS]
        error, floor = (
            "infinite" if fault[name] is None else f"{fault[name]:.1e}"
            for name in ("introduced_error", "noise_floor")
        )
        yield f"  - found {fault['kind']}, {error} (floor {floor}): {' | '.join(names)}: {evidence}"


def _judged(row: Row) -> str:
    if row.score is None:
        return row.result.get("verdict", row.status) if row.status == "measured" else row.status
    said = {
        "not detected": not row.score.detected,
        "not first": row.score.detected and not row.score.first,
        "another kind": row.score.detected and not row.score.kind,
        "not all named": row.case.count > 1 and not row.score.all_named,
        f"{row.score.astray} astray": bool(row.score.astray),
    }
    return ", ".join(words for words, holds in said.items() if holds)

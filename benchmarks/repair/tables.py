"""The benchmark's answer as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from benchmarks.common.bounds import at_least, at_most
from benchmarks.common.cases import INTENDED
from benchmarks.common.rows import disagreements
from benchmarks.repair.rows import Row
from benchmarks.repair.sums import Sums, sums

__all__ = ["report"]

_HEADER = (
    "single", "repaired", "partly", "left", "failed", "placed", "minimal", "double", "repaired", "triple", "repaired",
    "worse", "changed", "written", "bits kept", "correct", "touched", "untrue", "tried", "edits", "localize s",
    "repair s", "ratio", "longest s",
)  # fmt: skip
_WORDS, _ENTRIES = 200, 3


def report(rows: Sequence[Row]) -> str:
    """Tables of sums, then everything that isn't as it should be.

    "repaired": no answer differs on samples that the repair didn't see, and no layer is at fault. "placed": of the
    repaired ones with a single fault, those whose edits are all about the injected layer; "minimal": those that
    change no more operators and numbers than the fault did, either. "written": of the targets that were changed for
    the better, those whose file, in the target's own format, loads and runs. "untrue": results that claim more than
    was measured.
    """
    parts = [
        _wanted(sums(rows)),
        _table("", rows, lambda _: "all"),
        _table("model", rows, lambda row: row.case.model),
    ]
    parts.append(_table("group, format", rows, lambda row: f"{row.case.group}, {row.case.format}"))
    parts.append(_table("kind", [row for row in rows if row.kind], lambda row: row.kind))
    parts += [disagreements(rows), _by_fault(rows), _off(rows), *_lists(rows)]
    return "\n".join(part for part in parts if part)


def _wanted(item: Sums) -> str:
    """The whole, with bounds by Clopper and Pearson: 97.5 % confidence on the worse side."""
    faulty = item.single + item.double + item.triple
    shares = (
        ("single faults fully repaired", "95 %", item.repaired, item.single),
        ("double faults fully repaired", "90 %", item.double_repaired, item.double),
        ("triple faults fully repaired", "90 %", item.triple_repaired, item.triple),
        ("minimal, of repaired single faults", "95 %", item.minimal, item.minimal_of),
        ("only layers at fault edited, of these", "", item.placed, item.placed_of),
        ("written back and verified", "90 %", item.written, item.changed),
    )
    counts = (("made worse", item.worse, faulty), ("correct conversions touched", item.touched, item.correct))
    lines = ["| | wanted | reached | 97.5 % bound |", "|---|---|---|---:|"]
    for name, wanted, share, count in shares:
        bound = f"at least {at_least(share, count)}" if count else ""
        lines.append(f"| {name} | {wanted} | {_percent(share)} of {count} | {bound} |")
    for name, number, count in counts:
        bound = f"at most {at_most(number, count)}" if count else ""
        lines.append(f"| {name} | 0 | {number} of {count} | {bound} |")
    return "\n".join(lines) + "\n"


def _table(title: str, rows: Sequence[Row], key: Callable[[Row], str]) -> str:
    lines = [f"| {title} | {' | '.join(_HEADER)} |", f"|---|{'---:|' * len(_HEADER)}"]
    chosen = [row for row in rows if row.counts]
    names = sorted({key(row) for row in chosen})
    lines += [f"| {name} | {' | '.join(_cells(sums(row for row in chosen if key(row) == name)))} |" for name in names]
    return "\n".join(lines) + "\n"


def _cells(item: Sums) -> list[str]:
    return [
        str(item.single),
        _percent(item.repaired),
        str(item.partly),
        str(item.left),
        str(item.failed),
        _percent(item.placed),
        _percent(item.minimal),
        str(item.double),
        _percent(item.double_repaired),
        str(item.triple),
        _percent(item.triple_repaired),
        str(item.worse),
        str(item.changed),
        _percent(item.written),
        _percent(item.kept),
        str(item.correct),
        str(item.touched),
        str(item.dishonest),
        _number(item.tried),
        _number(item.edits),
        _number(item.localize_seconds),
        _number(item.repair_seconds),
        _number(item.ratio),
        _number(item.longest),
    ]


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f} %"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def _by_fault(rows: Sequence[Row]) -> str:
    """Single faults that aren't always repaired, the worst first."""
    outcomes = ("repaired", "partly", "left", "failed", "worse")
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        if row.counts and row.case.count == 1:
            counts.setdefault(row.case.faults[0], Counter())[row.score.outcome] += 1
    missed = {name: count for name, count in counts.items() if count.total() > count["repaired"]}
    if not missed:
        return ""
    lines = [f"| fault | asked | {' | '.join(outcomes)} |", f"|---|{'---:|' * (len(outcomes) + 1)}"]
    for name, count in sorted(missed.items(), key=lambda item: item[1]["repaired"] - item[1].total()):
        lines.append(f"| {name} | {count.total()} | {' | '.join(str(count[outcome]) for outcome in outcomes)} |")
    return "\n".join(lines) + "\n"


def _off(rows: Sequence[Row]) -> str:
    """What becomes of targets that were wrong before anything was injected."""
    chosen = [row for row in rows if row.off]
    if not chosen:
        return ""
    titles = ("case", "what's wrong", "found", "outcome", "error before", "after", "left")
    lines = [f"## Off by itself ({len(chosen)})", "", f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}"]
    for row in chosen:
        result = row.result
        sides = [result["before"], result["after"] or result["before"]]
        errors = ["infinite" if side["error"] is None else f"{side['error']:.1e}" for side in sides]
        found, left = str(len(result["found"])), str(len(sides[1]["faults"]))
        lines.append(f"| {' | '.join((row.case.name, row.off[:_WORDS], found, row.score.outcome, *errors, left))} |")
    return "\n".join([*lines, ""])


def _lists(rows: Sequence[Row]) -> Iterator[str]:
    counted = [row for row in rows if row.counts]
    repaired = [row for row in counted if row.score.outcome == "repaired"]
    sections: dict[str, list[Row]] = {
        "Made worse": [row for row in counted if row.score.outcome == "worse"],
        "Correct, and touched": [row for row in counted if row.score.outcome == "touched"],
        "Claimed, and not so": [row for row in counted if not row.score.honest],
        "Failed": [row for row in counted if row.status == "failed"],
        "Not written back": [row for row in counted if row.score.written is False],
        "Not in as few bits as before": [row for row in counted if row.score.kept is False],
        "Repaired elsewhere": [row for row in repaired if row.score.placed is False],
        "Repaired by more than was injected": [
            row for row in repaired if row.score.placed and row.score.minimal is False
        ],
        "Repaired, and it isn't known whether by little": [row for row in repaired if row.score.minimal is None],
        "Repaired partly": [row for row in counted if row.score.outcome == "partly"],
        "Left": [row for row in counted if row.score.outcome == "left"],
        "Changed on purpose, and touched": [
            row for row in rows if row.case.group == INTENDED and row.score.outcome in {"touched", "failed"}
        ],
        "No such case": [row for row in rows if row.status in {"no model", "not injected"}],
    }
    for title, chosen in sections.items():
        if chosen:
            yield "\n".join([f"## {title} ({len(chosen)})", "", *(line for row in chosen for line in _told(row)), ""])


def _told(row: Row) -> Iterator[str]:
    yield f"- `{row.case.name}`"
    if row.words:
        yield f"  - {row.words[:_WORDS]}"
    result = row.result
    for fault in result.get("injected", []):
        effect = "infinite" if fault["effect"] is None else f"{fault['effect']:.1e}"
        layers = ", ".join(fault["target_layers"][:_ENTRIES])
        yield f"  - injected {fault['kind']}, effect {effect}: {fault['words'][:_WORDS]} ({layers})"
    for fault in result.get("found", [])[:_ENTRIES]:
        layers = ", ".join(fault["target_layers"][:_ENTRIES])
        yield f"  - found {fault['kind']}: {layers}: {'; '.join(fault['evidence'])[:_WORDS]}"
    if result.get("refused"):
        yield f"  - refused: {result['refused'][:_WORDS]}"
    if "tried" in result:
        ended = "" if result["in_time"] else ", out of time"
        yield f"  - {result['tried']} candidates in {result['repair_seconds']:.1f} s{ended}"
    for edit in result.get("edits", [])[:_ENTRIES]:
        yield f"  - edit: {edit[:_WORDS]}"
    for name in ("injected", "repaired"):
        if (counts := result.get(f"{name}_changes")) is not None:
            yield f"  - {name}: {', '.join(f'{count} {what}' for what, count in counts.items())} changed"
    for name in ("before", "after"):
        if (side := result.get(name)) is not None:
            error = "infinite" if side["error"] is None else f"{side['error']:.1e}"
            yield f"  - {name}: outputs differ by {error}, {side['top1']} answers, {len(side['faults'])} faults"
    if result.get("command") and row.score.outcome == "touched":
        yield f"  - the command: {result['command']}"

"""Tables of rows, and what changed between two sets of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.judges.cases import KINDS
from benchmarks.judges.rows import judged, word
from benchmarks.judges.trial import EITHER, FAULTY, RIGHT

__all__ = ["changes", "summary", "wrong"]

Row = Mapping[str, Any]
_VERBS = ("compare", "localize")
_GRADES = {"good": 2, "undecided": 1, "failed": 1, "accused": 0, "cleared": 0}
_EXPLAINED = {True: "explained", False: "beyond"}


def summary(rows: Mapping[str, Row]) -> str:
    """What both roads say, by kind and label."""
    lines = [
        "| kind | label | pairs | compare: good | accused | cleared | undecided | localize: good | accused | cleared "
        "| undecided | first layer at fault | exact: target explained | source explained |",
        "|---|---|" + "---:|" * 12,
    ]
    found = judged(rows)
    for kind in KINDS:
        for label in (RIGHT, FAULTY, EITHER):
            some = [row for row in found if row["kind"] == kind and row["label"] == label]
            if some:
                lines.append(_line(kind, label, some))
    labels = (RIGHT, FAULTY, EITHER)
    lines += [_line("all", label, [row for row in found if row["label"] == label]) for label in labels]
    without = Counter(row["status"].partition(":")[0] for row in rows.values() if row["status"] != "judged")
    words = ", ".join(f"{count} {status}" for status, count in sorted(without.items()))
    return "\n".join([*lines, "", f"{len(found)} pairs" + (f"; {words}" if words else "")])


def _line(kind: str, label: str, rows: Sequence[Row]) -> str:
    cells = [kind, label, len(rows)]
    for verb in _VERBS:
        counts = Counter(word(row, verb) for row in rows)
        if label == EITHER:
            verdicts = Counter(row[verb]["verdict"] for row in rows)
            told = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
            cells += [told, "", "", verdicts["undecided"]]
        else:
            cells += [counts["good"], counts["accused"], counts["cleared"], counts["undecided"] + counts["failed"]]
    hits = [row["localize"]["hit"] for row in rows if row["guilty"] and row["localize"]["layer"]]
    cells.append(f"{sum(map(bool, hits))} of {len(hits)}" if hits else "")
    for side in ("target", "source"):
        known = [row["exact"][side] <= 1 for row in rows if row["exact"][side] is not None]
        cells.append(f"{sum(known)} of {len(known)}")
    return "| " + " | ".join(map(str, cells)) + " |"


def wrong(rows: Mapping[str, Row]) -> str:
    """Every right target that's accused, and every faulty one that's cleared, by either verb."""
    lines = []
    for row in judged(rows):
        words = {verb: word(row, verb) for verb in _VERBS}
        if set(words.values()) & {"accused", "cleared"}:
            planted = f", {row['planted']} at {', '.join(row['guilty'])}" if row["planted"] else ""
            lines += [f"- {row['case']} ({row['label']}{planted}: {row['why']})"]
            lines += [f"  - {verb} {words[verb]}: {row[verb]['verdict']}: {row[verb]['reason']}" for verb in _VERBS]
            lines += [
                f"  - exact, by {row['exact']['road']}: target {_over(row, 'target')}, source {_over(row, 'source')}"
            ]
    return "\n".join(lines) or "No right target is accused, no faulty one cleared."


def _over(row: Row, side: str) -> str:
    over = row["exact"][side]
    return "unknown" if over is None else f"{_EXPLAINED[over <= 1]} ({over:.3g})"


def changes(before: Mapping[str, Row], after: Mapping[str, Row]) -> str:
    """Every verdict and first layer that's another one, whether that's better, and how many are.

    Args:
        before: Rows by case.
        after: The same of another state.
    """
    lines, counts = [], Counter[str]()
    for name, new in after.items():
        old = before.get(name)
        if old is None:
            continue
        if old["status"] != "judged" or new["status"] != "judged":
            if old["status"] != new["status"]:
                lines.append(f"| {name} | | status | {old['status']} | {new['status']} | |")
            continue
        for verb in _VERBS:
            if old[verb]["verdict"] != new[verb]["verdict"]:
                how = _how(_GRADES.get(word(old, verb)), _GRADES.get(word(new, verb)))
                lines.append(_change(new, verb, old[verb]["verdict"], new[verb]["verdict"], how))
                counts[f"{verb}: {how}"] += 1
        one, two = (row["localize"] for row in (old, new))
        if one["layer"] != two["layer"]:
            how = _how(*(None if item["hit"] is None else int(item["hit"]) for item in (one, two)))
            lines.append(_change(new, "first layer", one["layer"] or "none", two["layer"] or "none", how))
            counts[f"first layer: {how}"] += 1
    known = sum(name in before for name in after)
    told = ", ".join(f"{count} {what}" for what, count in sorted(counts.items())) or "nothing changed"
    table = ["| pair | label | what | before | after | |", "|---|---|---|---|---|---|", *lines, ""] if lines else []
    return "\n".join([*table, f"{known} pairs in both: {told}"])


def _how(before: int | None, after: int | None) -> str:
    if before is None or after is None or before == after:
        return "neither"
    return "better" if after > before else "worse"


def _change(row: Row, what: str, before: str, after: str, how: str) -> str:
    return f"| {row['case']} | {row['label']} | {what} | {before} | {after} | {how} |"

"""Sums of cases, and tables of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.arithmetics.cases import RIGHT
from benchmarks.arithmetics.trial import ABOVE
from benchmarks.common.bounds import at_most

__all__ = ["OUTPUTS", "RECORDED", "Sums", "is_above", "is_wrong", "sums", "tables"]

Row = dict[str, Any]

OUTPUTS, RECORDED = "outputs", "recorded"
"""What was recorded: outputs alone, or tensors on the way, too."""

_FAULTY, _FAILED = "faulty", "failed"
_SHOWN = 40
_HEADER = ("right", "named", "named wrong", "accused", "undecided", "at most", "above", "found", "first", "below")


@dataclass(frozen=True)
class Sums:
    """Of some cases, with outputs alone or with recorded tensors.

    Attributes:
        right: Cases without a fault.
        named: Those whose arithmetic is named as it is, or not at all where it's float32.
        misnamed: Those that are given another name.
        accused: Those that are called faulty.
        undecided: Those that are neither right nor faulty.
        above: Cases with a fault that changes more than the arithmetic explains.
        found: Those that are called faulty.
        first: Those in which the first fault named is in a layer at fault.
        below: Cases with a fault that changes less.
    """

    right: int
    named: int
    misnamed: int
    accused: int
    undecided: int
    above: int
    found: int
    first: int
    below: int


def is_above(row: Row, asked: str) -> bool:
    """Whether a fault changes more than the arithmetic explains: at the outputs, or at its layer."""
    if asked == OUTPUTS:
        return bool(row["effect"] > ABOVE * row["cost"])
    return bool(row["part_effect"] > ABOVE * row["part_cost"])


def is_wrong(row: Row) -> bool:
    """Whether a right answer is called faulty, or a fault that should be found isn't."""
    if row["status"] != "measured":
        return row["status"] == _FAILED
    told = [asked for asked in (OUTPUTS, RECORDED) if row["fault"] == RIGHT or is_above(row, asked)]
    return any((row[asked]["verdict"] == _FAULTY) == (row["fault"] == RIGHT) for asked in told)


def sums(rows: Iterable[Row], asked: str) -> Sums:
    """Of rows that were measured."""
    measured = [row for row in rows if row["status"] == "measured"]
    right = [row for row in measured if row["fault"] == RIGHT]
    faulty = [row for row in measured if row["fault"] != RIGHT]
    above = [row for row in faulty if is_above(row, asked)]
    return Sums(
        right=len(right),
        named=sum(_named(row, asked) for row in right),
        misnamed=sum(bool(row[asked]["arithmetic"]) and not _named(row, asked) for row in right),
        accused=_called(right, asked, _FAULTY),
        undecided=_called(right, asked, "undecided") + _called(right, asked, _FAILED),
        above=len(above),
        found=_called(above, asked, _FAULTY),
        first=sum(row[asked]["verdict"] == _FAULTY and _first(row, asked) for row in above),
        below=len(faulty) - len(above),
    )


def tables(rows: Sequence[Row], about: Sequence[str]) -> str:
    """All tables.

    Args:
        rows: Of cases.
        about: Devices, in words.
    """
    statuses = sorted({row["status"] for row in rows} - {"measured"})
    lines = [*(f"- {line}" for line in about), ""]
    lines += [f"{sum(row['status'] == 'measured' for row in rows)} cases measured"]
    for status in statuses:
        found = [row for row in rows if row["status"] == status]
        words = sorted({row["words"] for row in found if row["words"]})[:3]
        lines.append(f"{len(found)} {status}" + (f": {'; '.join(words)}" if words else ""))
    sorts: dict[str, Callable[[Row], str]] = {
        "arithmetic": lambda row: f"{row['arithmetic']} by {row['device']}",
        "fault": lambda row: row["fault"],
        "network": lambda row: row["network"].rpartition("-")[0] or row["network"],
    }
    for asked in (OUTPUTS, RECORDED):
        lines += ["", f"## {'Outputs alone' if asked == OUTPUTS else 'Tensors on the way, too'}"]
        for sort, key in sorts.items():
            lines += ["", *_table(rows, asked, sort, key)]
        lines += ["", *_listed(rows, asked)]
    times = [sum(row["seconds"]) for row in rows if row["status"] == "measured"]
    if times:
        lines += ["", f"both verbs take {sum(times) / len(times):.2f} s on average, {max(times):.1f} s at most"]
    return "\n".join(lines)


def _called(rows: Iterable[Row], asked: str, verdict: str) -> int:
    return sum(row[asked]["verdict"] == verdict for row in rows)


def _named(row: Row, asked: str) -> bool:
    found, meant = row[asked]["arithmetic"], row["arithmetic"]
    return found == meant or (meant == "float32" and not found)


def _first(row: Row, asked: str) -> bool:
    faults = row[asked]["faults"]
    return bool(faults) and bool(set(faults[0]) & set(row["layers"]))


def _table(rows: Sequence[Row], asked: str, sort: str, key: Callable[[Row], str]) -> list[str]:
    lines = [f"| {sort} | {' | '.join(_HEADER)} |", "|---|" + "---:|" * len(_HEADER)]
    groups = sorted({key(row) for row in rows})
    for name in [*groups, "all"]:
        found = sums([row for row in rows if name in {key(row), "all"}], asked)
        first = str(found.first) if asked == RECORDED else ""
        cells = (
            *(found.right, found.named, found.misnamed, found.accused, found.undecided),
            *(at_most(found.accused, found.right), found.above, found.found, first, found.below),
        )
        lines.append(f"| {name} | {' | '.join(map(str, cells))} |")
    return lines


def _listed(rows: Sequence[Row], asked: str) -> list[str]:
    measured = [row for row in rows if row["status"] == "measured"]
    accused = [row for row in measured if row["fault"] == RIGHT and row[asked]["verdict"] == _FAULTY]
    passed = [
        row for row in measured if row["fault"] != RIGHT and is_above(row, asked) and row[asked]["verdict"] != _FAULTY
    ]
    lines = []
    for title, found in (("accused", accused), ("not found", passed)):
        lines.append(f"{title}: {len(found)}")
        lines += [
            f"- `{row['name']}`: {row[asked]['verdict']}, {row[asked]['reason'][:120]}" for row in found[:_SHOWN]
        ]
    return lines

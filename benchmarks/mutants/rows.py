"""What became of each mutant."""

from __future__ import annotations

import enum
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.mutants.mutant import Mutant

__all__ = ["EXPLAINED", "Fate", "Row", "explanations", "read_rows", "table", "unexplained", "write_rows"]

EXPLAINED = Path(__file__).with_name("explained.json")

_BY_HAND = "by hand"


class Fate(enum.StrEnum):
    """What can become of one."""

    CAUGHT = "caught"
    TIMED_OUT = "timed out"
    SURVIVED = "survived"
    UNREACHED = "not reached"


@dataclass(frozen=True)
class Row:
    """What became of a mutant.

    Attributes:
        mutant: Which.
        fate: Whether tests noticed.
        noticed: By which test, or how.
        seconds: That took.
    """

    mutant: Mutant
    fate: Fate
    noticed: str
    seconds: float

    @property
    def is_caught(self) -> bool:
        """Whether tests noticed: they failed, or didn't end."""
        return self.fate in (Fate.CAUGHT, Fate.TIMED_OUT)


def explanations() -> dict[tuple[str, str, str], str]:
    """Why mutants change nothing that matters, by what they're known by."""
    known = json.loads(EXPLAINED.read_text(encoding="utf-8"))
    return {(item["file"], item["before"], item["after"]): item["reason"] for item in known}


def unexplained(rows: Sequence[Row], known: dict[tuple[str, str, str], str]) -> list[Row]:
    """Those that nobody noticed, without a reason.

    Args:
        rows: All.
        known: Reasons.
    """
    return [row for row in rows if not row.is_caught and row.mutant.key not in known]


def table(rows: Sequence[Row], known: dict[tuple[str, str, str], str]) -> str:
    """What became of all, file by file, and each that nobody noticed.

    Args:
        rows: All.
        known: Reasons.
    """
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        group = _BY_HAND if row.mutant.operator == _BY_HAND else row.mutant.file
        counts.setdefault(group, Counter())[_told(row, known)] += 1
    hand = counts.pop(_BY_HAND, Counter())
    columns = [*Fate, "explained"]
    lines = ["| file | " + " | ".join(columns) + " |", "|---|" + "---:|" * len(columns)]
    groups = [*sorted(counts.items()), ("all drawn", sum(counts.values(), Counter())), (_BY_HAND, hand)]
    lines += [
        f"| {name} | " + " | ".join(str(found[column] or "") for column in columns) + " |" for name, found in groups
    ]
    lines.append(f"\n{_summary([row for row in rows if row.mutant.operator != _BY_HAND], known)}")
    for row in rows:
        if not row.is_caught:
            lines.append(f"\n{row.mutant.text}\n  {row.fate}: {known.get(row.mutant.key, 'unexplained')}")
    return "\n".join(lines)


def read_rows(path: Path) -> tuple[dict[str, Any], list[Row]]:
    """What a run was of, and its rows.

    Args:
        path: Of its file.
    """
    held = json.loads(path.read_text(encoding="utf-8"))
    rows = [
        Row(Mutant(**row["mutant"], code=""), Fate(row["fate"]), row["noticed"], row["seconds"])
        for row in held["rows"]
    ]
    return held["about"], rows


def write_rows(path: Path, about: dict[str, Any], rows: Sequence[Row]) -> None:
    """Keep a run.

    Args:
        path: Of its file.
        about: What it's of.
        rows: So far.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = [
        {"mutant": row.mutant.row(), "fate": row.fate, "noticed": row.noticed, "seconds": round(row.seconds, 1)}
        for row in rows
    ]
    path.write_text(json.dumps({"about": about, "rows": kept}, indent=1), encoding="utf-8")


def _summary(drawn: Sequence[Row], known: dict[tuple[str, str, str], str]) -> str:
    caught = sum(row.is_caught for row in drawn)
    matter = caught + len(unexplained(drawn, known))
    all_of_them, those = (f"{caught} of {count} ({caught / max(count, 1):.1%})" for count in (len(drawn), matter))
    return f"{all_of_them} are caught, {those} of those that aren't explained."


def _told(row: Row, known: dict[tuple[str, str, str], str]) -> str:
    return "explained" if not row.is_caught and row.mutant.key in known else row.fate

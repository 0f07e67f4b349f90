"""What changed between two runs."""

from __future__ import annotations

import enum
import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

from conrepair.localization.result import LocatedFault
from conrepair.metrics.statistics import wilson_interval
from conrepair.report.changes.standing import Standing, standings
from conrepair.report.localization.about import names_of_fault
from conrepair.report.result import AuditResult
from conrepair.runtime.errors import ExitCode
from conrepair.runtime.words import number, quoted

_MUCH = 2.0  # times the error before, from which on it's another one


class Sort(enum.StrEnum):
    """What became of a target, or of one thing about it."""

    WORSE = "worse"
    BETTER = "better"
    SAME = "same"
    NEW = "new"
    GONE = "gone"


@dataclass(frozen=True, kw_only=True)
class Detail:
    """One thing about a target.

    Attributes:
        sort: What became of it.
        what: A fault with its layer, or a figure.
        before: In words; "" where there was none.
        after: The same now.
    """

    sort: Sort
    what: str
    before: str = ""
    after: str = ""


@dataclass(frozen=True, kw_only=True)
class TargetChange:
    """A target in both runs, or in one.

    Attributes:
        sort: What became of it: worse where anything about it is.
        name: As a person reads it.
        backend: Where it ran.
        before: Its verdict in the first run; "" where it wasn't in it.
        after: The same in the second one.
        details: What differs, the worse first.
    """

    sort: Sort
    name: str
    backend: str
    before: str
    after: str
    details: tuple[Detail, ...]


@dataclass(frozen=True, kw_only=True)
class Changes:
    """Between two runs.

    Attributes:
        before: The first run.
        after: The second.
        rows: A change for each target of either, the worse first.
    """

    before: AuditResult
    after: AuditResult
    rows: tuple[TargetChange, ...]

    @property
    def exit_code(self) -> int:
        """1 where something got worse."""
        worse = any(row.sort is Sort.WORSE for row in self.rows)
        return int(ExitCode.DIFFERENT if worse else ExitCode.EQUIVALENT)

    @property
    def sentence(self) -> str:
        """In one sentence."""
        words = {sort: str(sort) for sort in Sort} | {Sort.SAME: "as before"}
        counts = Counter(row.sort for row in self.rows)
        told = ", ".join(f"{counts[sort]} {words[sort]}" for sort in Sort if counts[sort])
        return f"{told or 'nothing to compare'} of {len(self.rows)} {'target' if len(self.rows) == 1 else 'targets'}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        runs = {
            side: {"folder": str(run.folder), "command": run.command, "conrepair": run.versions.get("conrepair", "")}
            for side, run in (("before", self.before), ("after", self.after))
        }
        rows = [
            {
                **{name: getattr(row, name) for name in ("sort", "name", "backend", "before", "after")},
                "details": [vars(detail) for detail in row.details],
            }
            for row in self.rows
        ]
        return {"exit_code": self.exit_code, **runs, "rows": rows}


def changes_between(before: AuditResult, after: AuditResult) -> Changes:
    """Hold a run against an earlier one of the same models.

    A verdict that is worse, a fault that wasn't there, and a figure that is worse by more than chance or rounding
    make a target worse. Times are told, and decide nothing: two runs needn't have had the same machine to themselves.

    Args:
        before: The earlier one.
        after: The later one.
    """
    ours, theirs = standings(before), standings(after)
    if len(ours) == len(theirs) == 1:
        theirs = dict(zip(ours, theirs.values(), strict=True))
    rows = [_change(ours.get(key), theirs.get(key)) for key in dict.fromkeys([*ours, *theirs])]
    order = list(Sort)
    return Changes(before=before, after=after, rows=tuple(sorted(rows, key=lambda row: order.index(row.sort))))


def _change(before: Standing | None, after: Standing | None) -> TargetChange:
    known = after or before
    if known is None:
        raise ValueError("a target of neither run")
    details: tuple[Detail, ...] = ()
    sort = Sort.NEW if before is None else Sort.GONE
    if before is not None and after is not None:
        details = tuple(_details(before, after))
        sort = _sort(before, after, details)
    return TargetChange(
        sort=sort,
        name=known.name if before is None or before.name == known.name else f"{before.name}, now {known.name}",
        backend=known.backend,
        before="" if before is None else before.word,
        after="" if after is None else after.word,
        details=details,
    )


def _sort(before: Standing, after: Standing, details: tuple[Detail, ...]) -> Sort:
    sorts = {detail.sort for detail in details}
    if before.rank is not None and after.rank is not None and before.rank != after.rank:
        sorts.add(Sort.WORSE if after.rank > before.rank else Sort.BETTER)
    if Sort.WORSE in sorts or Sort.NEW in sorts:
        return Sort.WORSE
    return Sort.BETTER if sorts & {Sort.BETTER, Sort.GONE} else Sort.SAME


def _details(before: Standing, after: Standing) -> list[Detail]:
    found = [*_faults(before, after), *_figures(before, after)]
    order = [Sort.WORSE, Sort.NEW, Sort.BETTER, Sort.GONE, Sort.SAME]
    return sorted(found, key=lambda detail: order.index(detail.sort))


def _faults(before: Standing, after: Standing) -> list[Detail]:
    if before.faults is None or after.faults is None:
        return []  # layers of one of them weren't looked at
    found = []
    for place in dict.fromkeys([*after.faults, *before.faults]):
        old, new = before.faults.get(place), after.faults.get(place)
        sort = Sort.NEW if old is None else Sort.GONE if new is None else Sort.SAME
        words = f"{place[0]} at {quoted(place[1])}"
        found.append(Detail(sort=sort, what=words, before=_words(old), after=_words(new)))
    return found


def _words(fault: LocatedFault | None) -> str:
    if fault is None:
        return ""
    evidence = f": {quoted(fault.evidence[0], names=names_of_fault(fault))}" if fault.evidence else ""
    return f"{fault.measured}{evidence}".removeprefix(": ")


def _figures(before: Standing, after: Standing) -> list[Detail]:
    found = []
    if before.answers is not None and after.answers is not None:
        words = [f"{differing} of {count}" for differing, count in (before.answers, after.answers)]
        sort = _by_chance(before.answers, after.answers, more=Sort.WORSE)
        found.append(Detail(sort=sort, what="answers that differ", before=words[0], after=words[1]))
    if before.accuracy is not None and after.accuracy is not None:
        words = [f"{right} of {count}" for right, count in (before.accuracy, after.accuracy)]
        sort = _by_chance(before.accuracy, after.accuracy, more=Sort.BETTER)
        found.append(Detail(sort=sort, what="answered rightly", before=words[0], after=words[1]))
    if before.error is not None and after.error is not None:
        sort = _by_rounding(before.error, after.error)
        words = [number(before.error[0]), number(after.error[0])]
        found.append(Detail(sort=sort, what="relative error", before=words[0], after=words[1]))
    if before.times is not None and after.times is not None:
        apart = before.times.q95 < after.times.q05 or after.times.q95 < before.times.q05
        told = "" if apart else " (within what either run varies by)"
        words = [f"{1000 * times.median:.3g} ms" for times in (before.times, after.times)]
        found.append(Detail(sort=Sort.SAME, what="median time", before=words[0], after=words[1] + told))
    return found


def _by_chance(before: tuple[int, int], after: tuple[int, int], *, more: Sort) -> Sort:
    """Whether shares differ by more than samples of these sizes do: their 95 % intervals lie apart."""
    old, new = wilson_interval(*before), wilson_interval(*after)
    if new[0] > old[1]:
        return more
    if new[1] < old[0]:
        return Sort.BETTER if more is Sort.WORSE else Sort.WORSE
    return Sort.SAME


def _by_rounding(before: tuple[float, float], after: tuple[float, float]) -> Sort:
    """Whether an error is another one: more than twice as large, or less than half, and beyond rounding."""
    (old, old_floor), (new, new_floor) = before, after
    if new > max(_MUCH * old, new_floor) or (math.isnan(new) and not math.isnan(old)):
        return Sort.WORSE
    return Sort.BETTER if old > max(_MUCH * new, old_floor) else Sort.SAME

"""What changed between two runs."""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from conrepair.application.report.figures import Figures
from conrepair.application.report.localization.advice import names_of_fault
from conrepair.application.report.result import AuditResult, Row
from conrepair.application.report.told import OF_FILES, Told, failed, place_of, target_rows, told_row
from conrepair.diagnosis.localization.result import LocatedFault
from conrepair.ground.metrics.statistics import wilson_interval
from conrepair.ground.runtime.errors import ExitCode
from conrepair.ground.runtime.words import quoted
from conrepair.verdicts.evaluate.verdict import Verdict

_MUCH = 2.0  # times the error before, from which on it's another one
_FAILED = len(Verdict)  # behind the worst verdict: nothing can be said of it
_Key = tuple[str, str, str]


@dataclass(frozen=True, kw_only=True)
class Standing:
    """How a target stands, as far as that is held against how it stood.

    Attributes:
        name: As a person reads it.
        backend: Where it ran.
        word: Its verdict, or what there is in its place.
        rank: Of that from best to worst; None of what wasn't judged.
        faults: What was measured of each, in words, by its kind and layer (the original's name of it, which other
            conversions have, too); None where it's wrong and layers weren't looked at.
        figures: What was measured.
    """

    name: str
    backend: str
    word: str
    rank: int | None
    faults: Mapping[tuple[str, str], str] | None
    figures: Figures


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
        rows = [vars(row) | {"details": list(map(vars, row.details))} for row in self.rows]
        return {"exit_code": self.exit_code, **runs, "rows": rows}


def changes_between(before: AuditResult, after: AuditResult) -> Changes:
    """Hold a run against an earlier one of the same models.

    A verdict that is worse, a fault that wasn't there, and a figure that is worse by more than chance or rounding
    make a target worse. Times are told, and decide nothing: two runs needn't have had the same machine to themselves.

    Args:
        before: The earlier one.
        after: The later one.
    """
    ours, theirs = targets_as_left(before), targets_as_left(after)
    if len(ours) == len(theirs) == 1:
        theirs = dict(zip(ours, theirs.values(), strict=True))
    rows = [change_of(ours.get(key), theirs.get(key)) for key in dict.fromkeys([*ours, *theirs])]
    order = list(Sort)
    return Changes(before=before, after=after, rows=tuple(sorted(rows, key=lambda row: order.index(row.sort))))


def targets_as_left(result: AuditResult) -> dict[_Key, Standing]:
    """All targets by model, conversion and backend, as they are after a repair.

    Where files were named and there's one target, it's the target, whatever its file is called: so a conversion is
    held against the one before it.

    Args:
        result: Of any verb, or of an audit.
    """
    rows = target_rows(result)
    if result.kind in OF_FILES and rows:
        return {("", "", ""): standing_of(rows[-1], result)}
    return {(row.model, row.conversion, row.backend): standing_of(row, result) for row in rows}


def standing_of(row: Row, result: AuditResult) -> Standing:
    """How a target stands, after a repair where there was one.

    Args:
        row: Of the target.
        result: The run that it's of.
    """
    done, name = row.repaired.result, "{}"
    if done is None or not done.edits:
        told = told_row(row, result, {})
    else:
        told, name = told_row(row, result, {}, done.after), "{} (repaired)"
    rank = told.verdict.severity if told.verdict is not None else _FAILED if failed(row) else None
    return Standing(
        name=name.format(told.name),
        backend=row.backend,
        word=told.word,
        rank=rank,
        faults=_by_place(told),
        figures=told.figures,
    )


def change_of(before: Standing | None, after: Standing | None) -> TargetChange:
    """What became of a target.

    Args:
        before: How it stood; None where it wasn't there.
        after: How it stands; None where it isn't there any more.
    """
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
    found = [*_faults(before.faults, after.faults), *_figures(before.figures, after.figures)]
    order = [Sort.WORSE, Sort.NEW, Sort.BETTER, Sort.GONE, Sort.SAME]
    return sorted(found, key=lambda detail: order.index(detail.sort))


def _faults(one: Mapping[tuple[str, str], str] | None, two: Mapping[tuple[str, str], str] | None) -> Iterator[Detail]:
    if one is None or two is None:
        return  # layers of one of them weren't looked at
    for place in dict.fromkeys([*two, *one]):
        sort = Sort.NEW if place not in one else Sort.GONE if place not in two else Sort.SAME
        what = f"{place[0]} at {quoted(place[1])}"
        yield Detail(sort=sort, what=what, before=one.get(place, ""), after=two.get(place, ""))


def _by_place(target: Told) -> Mapping[tuple[str, str], str] | None:
    found, verdict = target.found, target.verdict
    if found is None:
        return {} if verdict is not None and verdict.is_right else None
    return {place_of(fault): _words(fault) for fault in found.faults}


def _words(fault: LocatedFault) -> str:
    evidence = f": {quoted(fault.evidence[0], names=names_of_fault(fault))}" if fault.evidence else ""
    return f"{fault.measured}{evidence}".removeprefix(": ")


def _figures(before: Figures, after: Figures) -> Iterator[Detail]:
    for what, words, sort in _FIGURES:
        old, new = before.told(words), after.told(words)
        if old and new:
            yield Detail(sort=sort(before, after), what=what, before=old, after=new)
    if before.times is not None and after.times is not None:
        apart = before.times.q95 < after.times.q05 or after.times.q95 < before.times.q05
        varies = "" if apart else " (within what either run varies by)"
        old, new = (side.told("{milliseconds:.3g} ms") for side in (before, after))
        yield Detail(sort=Sort.SAME, what="median time", before=old, after=new + varies)


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


_FIGURES: tuple[tuple[str, str, Callable[[Any, Any], Sort]], ...] = (
    ("predictions that differ", "{answers}", lambda one, two: _by_chance(one.answers, two.answers, more=Sort.WORSE)),
    ("right predictions", "{accuracy}", lambda one, two: _by_chance(one.accuracy, two.accuracy, more=Sort.BETTER)),
    ("relative error", "{error}", lambda one, two: _by_rounding((one.error, one.floor), (two.error, two.floor))),
)

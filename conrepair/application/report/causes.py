"""Faults that are the same in several targets of an audit, as one cause with its targets and their repaired files."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from conrepair.application.report.localization.advice import about_step, fault_advice, names_of_fault
from conrepair.application.report.repair.summary import why_left
from conrepair.application.report.result import AuditResult, Row
from conrepair.application.report.row_paths import RowFolders
from conrepair.application.report.told import (
    both_names,
    called,
    failed,
    files_of,
    is_mended,
    is_wrong,
    place_of,
    target_rows,
    word_of,
)
from conrepair.diagnosis.localization.result import LocatedFault
from conrepair.diagnosis.repairs.outcomes import PATCH
from conrepair.formats.models.identity import model_files
from conrepair.ground.runtime.path_text import typed
from conrepair.ground.runtime.words import counted, quoted
from conrepair.verdicts.evaluate.verdict import Verdict

_NAMES = re.compile(r"\s*`[^`]*`")
_VALUES = re.compile(r"\[[^\]]*\]|(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.])")
_ENDS = re.compile(r"(?<=[^.\d])\. |; |: relative error")
_UNSEEN = (
    "Layers weren't compared: switch `localize` of `stages` on in the configuration, or run `conrepair localize`."
)
_TOLD = 3  # targets with their faults in a sentence
_UP = "The repair's time was up before its search ended: give it more (`seconds` of `repair` in the configuration)."
_OPTIMIZED = (
    "No converter did this: {backend} runs the original file. `conrepair trace FILE` finds which optimization does."
)

_Key = tuple[str, str, str]
_Target = tuple[str, str, str]


@dataclass
class _Group:
    """Rows of a target, and its faults of one cause."""

    rows: list[Row] = field(default_factory=list)
    faults: list[LocatedFault] = field(default_factory=list)

    def add(self, row: Row, *faults: LocatedFault) -> None:
        """One more row, once, with faults of it."""
        if not any(row is other for other in self.rows):
            self.rows.append(row)
        self.faults += faults


@dataclass(frozen=True, kw_only=True)
class CauseTarget:
    """A converted model, or a build, that has a fault.

    Attributes:
        rows: Of the run, wherever it ran and wasn't right; what was localized first.
        layers: At fault there, as the target calls them.
        words: What is wrong there, with the names of its layers.
        where: The first of these layers, by its name in the original model, too; "" where none is known.
        repaired: Whether what a repair wrote is right wherever the target ran.
        files: That the repair wrote, as paths in the run's folder.
    """

    rows: tuple[Row, ...]
    layers: tuple[str, ...]
    words: str
    where: str
    repaired: bool
    files: tuple[str, ...]

    @property
    def name(self) -> str:
        """Model and conversion."""
        return called(self.rows[0])

    @property
    def backends(self) -> tuple[str, ...]:
        """Where it ran and wasn't right."""
        return tuple(row.ran_by for row in self.rows)


@dataclass(frozen=True, kw_only=True)
class Cause:
    """What is wrong with one target or more.

    Attributes:
        step: The converter or the compiler that brought it in; "" where that isn't known.
        kind: Of fault; where no layer is at fault, the verdict.
        words: What is wrong, without the names of one target.
        targets: That have it, in the run's order.
        advice: Where to look, or how to learn more; "" where nothing is left to do.
        command: That does so for the first of the targets that are left; "" where there's none.
    """

    step: str
    kind: str
    words: str
    targets: tuple[CauseTarget, ...]
    advice: str = ""
    command: str = ""

    @property
    def repaired(self) -> int:
        """How many of the targets are right after a repair."""
        return sum(target.repaired for target in self.targets)

    @property
    def state(self) -> str:
        """As `told.state_of`."""
        if self.repaired == len(self.targets):
            return "right"
        return "warning" if self.repaired or self.kind == "undecided" else "wrong"

    @property
    def counted(self) -> str:
        """How many targets, and in how many it's repaired."""
        count = len(self.targets)
        targets = counted(count, "target")
        if self.state == "right":
            return f"{targets}, {'' if count == 1 else 'all '}repaired"
        return f"{targets}, repaired in {self.repaired}" if self.repaired else targets


def causes_of(result: AuditResult) -> tuple[Cause, ...]:
    """What is wrong in an audit: what isn't repaired first, then what most targets have.

    Faults are the same where one step brought them in, and one difference tells them: of operator and attribute.
    Names and values may differ between targets. Of a fault with several differences it's the one that most targets
    share. A step on the way to targets that a repair made right is none of its own.

    Args:
        result: Of an audit.
    """
    rows = [row for row in target_rows(result) if is_wrong(row) or failed(row) or _faults(row)]
    rows = [row for row in rows if not result.is_on_the_way(row)]
    rules = [rule for row in rows for fault in _faults(row) for rule in set(_rules(fault, row))]
    shared, alike = Counter(rules), Counter(words for _, _, words in rules)
    groups: dict[_Key, dict[_Target, _Group]] = {}
    files: dict[_Target, list[_Group]] = {}
    for row in rows:
        for fault in _faults(row):
            key = max(_rules(fault, row), key=lambda rule: (shared[rule], alike[rule[2]]))
            group = groups.setdefault(key, {}).setdefault(_target(row), _Group())
            group.add(row, fault)
            files.setdefault(_target(row), []).append(group)
    for row in rows:
        if _faults(row):
            continue
        same = files.get((row.model, row.conversion, "")) if row.localized.result is None else None
        if same is None or row.problem is not None:
            same = [groups.setdefault(_verdict(row), {}).setdefault(_target(row), _Group())]
        for group in same:  # else of a file which was looked into where it ran first
            group.add(row)
    folders = RowFolders(result.rows)
    causes = [_made(key, list(found.values()), result, folders) for key, found in groups.items()]
    return tuple(sorted(causes, key=lambda cause: (cause.state == "right", -len(cause.targets))))


def decision_of(result: AuditResult) -> str:
    """What of an audit may ship and what not, and why, in a sentence; "" where nothing was compared.

    Args:
        result: Of an audit.
    """
    rows = [row for row in target_rows(result) if not result.is_on_the_way(row)]
    accepted = [row for row in rows if row.verdict is not None and row.where in result.known]
    judged = [row for row in rows if row.verdict is not None and row.where not in result.known]
    wrong = [row for row in judged if is_wrong(row) and not row.repaired.is_right]
    mended, stops = list(filter(is_mended, judged)), list(filter(failed, rows))
    right = _names(row for row in judged if not is_wrong(row))
    sure = [row for row in wrong if row.verdict is not Verdict.UNDECIDED]
    parts = []
    if right:
        parts.append(f"ship {'this one' if len(right) == 1 else f'these {len(right)}'}: {_some(right)}")
    if mended:
        parts.append(f"ship the repaired files of {_some(_names(mended))}")
    if accepted:
        parts.append(f"known, and accepted as they are: {_some(_names(accepted))}")
    if sure:
        parts.append(f"don't ship {_some(_reasons(sure, causes_of(result)), most=_TOLD, by='; nor ')}")
    if doubtful := _names(row for row in wrong if row.verdict is Verdict.UNDECIDED):
        parts.append(f"can't tell whether {_some(doubtful)} {'is' if len(doubtful) == 1 else 'are'} right")
    if stops:
        parts.append(f"couldn't check {_some(_names(stops))}")
    sentence = "; ".join(parts)
    return sentence and f"{sentence[0].upper()}{sentence[1:].rstrip('.')}."


def _names(rows: Iterable[Row]) -> list[str]:
    """Each once, with where it ran if that isn't its own library."""
    told = (called(row) + (f" on {row.backend}" if row.backend == row.ran_by else "") for row in rows)
    return list(dict.fromkeys(told))


def _some(names: Sequence[str], *, most: int = 8, by: str = ", ") -> str:
    more = len(names) - most
    return by.join(names[:most]) + (f" and {more} more" if more > 0 else "")


def _reasons(rows: Sequence[Row], causes: Sequence[Cause]) -> list[str]:
    """Each of these targets once, with what is wrong with it: those of one cause together."""
    left, told, meant = dict.fromkeys(_names(rows)), list[str](), set(map(id, rows))
    for cause in causes:
        found = [target for target in cause.targets if any(id(row) in meant for row in target.rows)]
        names = [name for target in found for name in _names(target.rows) if name in left]
        if not names:
            continue
        for name in names:
            left.pop(name, None)
        first, alone = found[0], len(found) == 1
        words = first.words.removeprefix(f"`{first.layers[0]}`: " if first.layers else "") if alone else cause.words
        at = f"layer {first.where}: " if alone and first.where else ""
        told.append(f"{_some(names)}: {at}{words.rstrip('.')}")
    return [*told, *left]


def step_of(row: Row) -> str:
    """The steps that brought in what is wrong of a target, where one converter isn't all that could; "" elsewhere.

    Args:
        row: Of a target.
    """
    several = "+" in row.conversion or not row.conversion or row.ran.build is not None
    steps = [_step(fault, row) for fault in _faults(row)] if several else []
    return " and ".join(dict.fromkeys(filter(None, steps)))


def repaired_files(row: Row, folders: RowFolders) -> tuple[str, ...]:
    """What a repair of an audit's target wrote, as paths in the run's folder: the model, then the patch.

    Args:
        row: Of the target.
        folders: Of the run.
    """
    done = row.repaired.result
    if done is None:
        return ()
    names = [] if done.model is None else [file.name for file in model_files(Path(done.model.path))]
    names += [] if done.patch is None else [PATCH]
    return tuple(str(PurePosixPath(folders.repair(row), name)) for name in names)


def _faults(row: Row) -> Sequence[LocatedFault]:
    return () if row.localized.result is None else row.localized.result.faults


def _target(row: Row) -> _Target:
    """What a row's fault is in: a file, whatever that ran on, or a build."""
    steps = row.localized.steps
    built = bool(steps) and steps[row.localized.explaining].is_a_backends
    return row.model, row.conversion, row.backend if built or (not steps and row.ran.build is not None) else ""


def _rules(fault: LocatedFault, row: Row) -> list[_Key]:
    """What faults of one cause may have in common: step, kind where it's needed, words without names and values."""
    rules = [(_step(fault, row), "", _VALUES.sub("…", words)) for words, _ in fault.differences]
    return rules or [(_step(fault, row), fault.kind.value, _VALUES.sub("…", _unnamed(fault.words)))]


def _step(fault: LocatedFault, row: Row) -> str:
    """The converter without its options, or the compiler."""
    if row.localized.steps[row.localized.explaining].is_a_backends:
        return row.backend if row.place is None else row.place.library
    return fault.step.partition(",")[0]


def _unnamed(words: str) -> str:
    """A sentence without the names in it."""
    return quoted(_NAMES.sub("", words))


def _verdict(row: Row) -> _Key:
    """The same of a target in which no layer is at fault, or known to be."""
    stops = () if row.mending is None else row.mending.stops
    step = stops[0].converter if stops else row.backend if _is_original(row) else ""
    return step, word_of(row, row.verdict), _VALUES.sub("…", _said(row))


def _is_original(row: Row) -> bool:
    """Whether it's the original file itself, on a backend whose kernels can't be looked into."""
    return row.kind == "reference" and row.problem is None and row.ran.build is None


def _said(row: Row) -> str:
    """What is known of a target without a layer at fault, without the names in it."""
    problem = row.localized.problem
    if row.problem is None and row.localized.result is None and problem is None:
        return f"outputs differ{' from those of the library that the file is of' if _is_original(row) else ''}"
    told = row.reason if problem is None else problem.message
    return _unnamed(_ENDS.split(" ".join(told.split()), maxsplit=1)[0])


def _made(key: _Key, groups: Sequence[_Group], result: AuditResult, folders: RowFolders) -> Cause:
    step, kind, words = key
    faults = [fault for group in groups for fault in group.faults]
    told = [item for fault in faults for item in ([rule for rule, _ in fault.differences] or [_unnamed(fault.words)])]
    told = told or [_said(row) for group in groups for row in group.rows]
    exact = {item for item in told if _VALUES.sub("…", item) == words}
    targets = tuple(_of_target(group, folders) for group in groups)
    left = next((group for group, target in zip(groups, targets, strict=True) if not target.repaired), None)
    return Cause(
        step=step,
        kind=kind or faults[0].kind.value,
        words=exact.pop() if len(exact) == 1 else words,
        targets=targets,
        advice="" if left is None else _advice(left.rows[0], left.faults, result),
        command="" if left is None else _command(left.rows[0], result),
    )


def _told(fault: LocatedFault) -> str:
    """What is wrong at a layer, all of it where that's several things."""
    names, rules = names_of_fault(fault), dict.fromkeys(rule for rule, _ in fault.differences)
    words = f"`{fault.places[0]}`: {'; '.join(rules)}" if len(rules) > 1 else fault.words
    return quoted(words, names=names)


def _of_target(group: _Group, folders: RowFolders) -> CauseTarget:
    told = list(dict.fromkeys(map(_told, group.faults)))
    first = told[0] if told else quoted(group.rows[0].reason)
    files = (name for row in group.rows for name in repaired_files(row, folders)) if told else ()
    return CauseTarget(
        rows=tuple(group.rows),
        layers=tuple(dict.fromkeys(name for fault in group.faults for name in fault.places[:1])),
        words=f"{first}, and {len(told) - 1} more like it" if len(told) > 1 else first,
        where=both_names(group.faults[0].places[0], place_of(group.faults[0])[1]) if group.faults else "",
        repaired=all(row.repaired.is_right for row in group.rows),
        files=tuple(dict.fromkeys(files)),
    )


def _command(row: Row, result: AuditResult) -> str:
    """What names the layers of a target, or repairs it, where that wasn't tried and its files can be given."""
    files, done = files_of(row, result), row.repaired
    tried = any((row.problem, row.localized.problem, done.result, done.problem))
    by_backend = row.ran.build is not None or any(step.compared.backend for step in row.localized.steps)
    if tried or not files or files[0] == files[1] or by_backend:
        return ""
    verb = "repair" if _faults(row) else "localize"
    return (
        ""
        if row.localized.result is not None and not _faults(row)
        else shlex.join(["conrepair", verb, *map(typed, files)])
    )


def _advice(row: Row, faults: Sequence[LocatedFault], result: AuditResult) -> str:
    """What to do about a target that isn't repaired: why it couldn't be, where to look, how to learn more."""
    if (done := row.repaired.result) is not None and ((left := why_left(done)) or not done.in_time):
        return left[0] if left else _UP
    if faults:
        return fault_advice(faults[0], about_step(row, result, row.localized.explaining))
    problem = row.localized.problem or row.problem
    if problem is not None:
        return problem.explanation
    if _is_original(row):
        return _OPTIMIZED.format(backend=row.backend)
    return "" if row.localized.result is not None else _UNSEEN

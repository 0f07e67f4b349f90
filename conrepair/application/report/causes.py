"""Faults that are the same in several targets of an audit, as one cause with its targets and their repaired files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from conrepair.application.report.localization.advice import about_step, fault_advice, names_of_fault
from conrepair.application.report.repair.summary import why_left
from conrepair.application.report.result import AuditResult, Row
from conrepair.application.report.row_paths import RowFolders
from conrepair.application.report.told import failed, is_wrong, target_rows, word_of
from conrepair.diagnosis.localization.result import LocatedFault
from conrepair.diagnosis.repairs.outcomes import PATCH
from conrepair.formats.models.identity import model_files
from conrepair.ground.runtime.words import quoted

_NAMES = re.compile(r"\s*`[^`]*`")
_VALUES = re.compile(r"\[[^\]]*\]|(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.])")
_ENDS = re.compile(r"(?<=[^.\d])\. |; |: relative error")
_UNSEEN = (
    "Layers weren't compared: switch `localize` of `stages` on in the configuration, or run "
    "`conrepair localize ORIGINAL CONVERTED`."
)
_OPTIMIZED = (
    "No converter did this: {backend} runs the original file. `conrepair trace FILE` finds which optimization does."
)

_Target = tuple[str, str, str]


@dataclass(frozen=True, kw_only=True)
class CauseTarget:
    """A converted model, or a build, that has a fault.

    Attributes:
        rows: Of the run, wherever it ran and wasn't right; what was localized first.
        layers: At fault there, as the target calls them.
        words: What is wrong there, with the names of its layers.
        repaired: Whether what a repair wrote is right wherever the target ran.
        files: That the repair wrote, as paths in the run's folder.
    """

    rows: tuple[Row, ...]
    layers: tuple[str, ...]
    words: str
    repaired: bool
    files: tuple[str, ...]

    @property
    def name(self) -> str:
        """Model and conversion."""
        return self.rows[0].label.replace("+", " > ")

    @property
    def backends(self) -> tuple[str, ...]:
        """Where it ran and wasn't right."""
        return tuple(row.backend for row in self.rows)


@dataclass(frozen=True, kw_only=True)
class Cause:
    """What is wrong with one target or more.

    Attributes:
        step: The converter or the compiler that brought it in; "" where that isn't known.
        kind: Of fault; where no layer is at fault, the verdict.
        words: What is wrong, without the names of one target.
        targets: That have it, in the run's order.
        advice: Where to look, or how to learn more; "" where nothing is left to do.
    """

    step: str
    kind: str
    words: str
    targets: tuple[CauseTarget, ...]
    advice: str = ""

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
        if self.state == "right":
            return "1 target, repaired" if count == 1 else f"{count} targets, all repaired"
        targets = "1 target" if count == 1 else f"{count} targets"
        return f"{targets}, repaired in {self.repaired}" if self.repaired else targets


def causes_of(result: AuditResult) -> tuple[Cause, ...]:
    """What is wrong in an audit: what isn't repaired first, then what most targets have.

    Faults are the same where one step brought them in, and the same words tell them: kind, operator and attribute.
    Names and values may differ between targets.

    Args:
        result: Of an audit.
    """
    wrong = [row for row in target_rows(result) if is_wrong(row) or failed(row) or _faults(row)]
    found: dict[tuple[str, str, str], dict[_Target, list[LocatedFault]]] = {}
    rows: dict[_Target, list[Row]] = {}
    placed: set[int] = set()
    for row in wrong:
        for fault in _faults(row):
            found.setdefault(_cause(fault, row), {}).setdefault(_target(row), []).append(fault)
        if _faults(row):
            rows.setdefault(_target(row), []).append(row)
            placed.add(id(row))
    apart: dict[tuple[str, str, str], dict[_Target, list[LocatedFault]]] = {}
    for row in wrong:
        model = row.model, row.conversion, ""
        if id(row) in placed:
            continue
        if model in rows and row.localized.result is None and row.problem is None:
            rows[model].append(row)  # the same file, which was looked into where it ran first
            continue
        rows.setdefault(_target(row), []).append(row)
        apart.setdefault(_verdict(row), {})[_target(row)] = []
    folders = RowFolders(result.rows)
    causes = [_made(key, targets, rows, result, folders) for key, targets in {**found, **apart}.items()]
    return tuple(sorted(causes, key=lambda cause: (cause.state == "right", -len(cause.targets))))


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
    built = bool(steps) and steps[row.localized.explaining].name == "build"
    return row.model, row.conversion, row.backend if built or (not steps and row.ran.build is not None) else ""


def _cause(fault: LocatedFault, row: Row) -> tuple[str, str, str]:
    """What faults of one cause have in common: step, kind, words without names and values."""
    return _step(fault, row), fault.kind.value, _VALUES.sub("…", _words(fault))


def _step(fault: LocatedFault, row: Row) -> str:
    """The converter without its options, or the compiler."""
    if row.localized.steps[row.localized.explaining].name == "build":
        return row.backend if row.place is None else row.place.library
    return fault.step.partition(",")[0]


def _words(fault: LocatedFault) -> str:
    """What differs, without the names of layers."""
    rules = dict.fromkeys(words for words, _ in fault.differences)
    return "; ".join(rules) or quoted(_NAMES.sub("", fault.words))


def _verdict(row: Row) -> tuple[str, str, str]:
    """The same of a target in which no layer is at fault, or known to be."""
    stops = () if row.mending is None else row.mending.stops
    step = stops[0].converter if stops else ""
    told = row.localized.problem.message if row.localized.problem is not None else row.reason
    first = _ENDS.split(" ".join(told.split()), maxsplit=1)[0]
    return step, word_of(row, row.verdict), _VALUES.sub("…", quoted(_NAMES.sub("", first)))


def _made(
    key: tuple[str, str, str],
    faults: Mapping[_Target, Sequence[LocatedFault]],
    rows: Mapping[_Target, Sequence[Row]],
    result: AuditResult,
    folders: RowFolders,
) -> Cause:
    step, kind, words = key
    exact = {_words(fault) for found in faults.values() for fault in found}
    targets = tuple(_of_target(rows[place], found, folders) for place, found in faults.items())
    left = [place for place, target in zip(faults, targets, strict=True) if not target.repaired]
    return Cause(
        step=step,
        kind=kind,
        words=exact.pop() if len(exact) == 1 else words,
        targets=targets,
        advice=_advice(rows[left[0]][0], faults[left[0]], result) if left else "",
    )


def _of_target(rows: Sequence[Row], faults: Sequence[LocatedFault], folders: RowFolders) -> CauseTarget:
    told = list(dict.fromkeys(quoted(fault.words, names=names_of_fault(fault)) for fault in faults))
    first = told[0] if told else quoted(rows[0].reason)
    return CauseTarget(
        rows=tuple(rows),
        layers=tuple(dict.fromkeys(name for fault in faults for name in fault.places[:1])),
        words=f"{first}, and {len(told) - 1} more like it" if len(told) > 1 else first,
        repaired=all(row.repaired.is_right for row in rows),
        files=tuple(dict.fromkeys(name for row in rows for name in repaired_files(row, folders))),
    )


def _advice(row: Row, faults: Sequence[LocatedFault], result: AuditResult) -> str:
    """What to do about a target that isn't repaired: why it couldn't be, where to look, how to learn more."""
    if row.repaired.result is not None and (left := why_left(row.repaired.result)):
        return left[0]
    if faults:
        return fault_advice(faults[0], about_step(row, result, row.localized.explaining))
    problem = row.localized.problem or row.problem
    if problem is not None:
        return problem.explanation
    if row.kind == "reference" and row.ran.build is None:
        return _OPTIMIZED.format(backend=row.backend)
    return "" if row.localized.result is not None else _UNSEEN

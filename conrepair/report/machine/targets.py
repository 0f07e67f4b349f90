"""What a run says of each of its targets, as programs ask for it: passed or not, and by which faults."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from conrepair.localization.result import Localization
from conrepair.report.localization.about import names_of, names_of_fault
from conrepair.report.result import AuditResult, Row
from conrepair.report.row_paths import name_of, target_rows, without_device, word_of
from conrepair.runtime.errors import ExitCode
from conrepair.runtime.words import quoted


class TestOutcome(enum.StrEnum):
    """What a test's report calls it; a row that alone would make the command end with 1 has failed."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"


@dataclass(frozen=True, kw_only=True)
class TargetFinding:
    """A fault, or faults that one rule stands for.

    Attributes:
        kind: Of fault; of a target without one, its verdict.
        words: What is wrong, in a sentence.
        layers: Of the target, whole names, the guiltiest first; none where no layer can be accused.
        figures: What was measured there, by name.
    """

    kind: str
    words: str
    layers: tuple[str, ...] = ()
    figures: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Target:
    """A row, as programs ask for it.

    Attributes:
        row: All of it.
        name: Of the model, with its conversion.
        source: Name of the model that it's held against.
        outcome: Whether it passed.
        word: Its verdict, or what there is in its place.
        reason: In words.
        repaired: Whether a repair made it right.
        findings: What is at fault.
    """

    row: Row
    name: str
    source: str
    outcome: TestOutcome
    word: str
    reason: str
    repaired: bool
    findings: tuple[TargetFinding, ...]


def targets_of(result: AuditResult) -> list[Target]:
    """All targets, in their order.

    Args:
        result: Of any verb, or of an audit.
    """
    names = {row.label: name_of(row, result) for row in reversed(result.rows)}
    return [_target(row, result, names) for row in target_rows(result)]


def _target(row: Row, result: AuditResult, known: Mapping[str, str]) -> Target:
    found = row.localized.result
    by_layers = found is not None and result.kind in {"localize", "repair"}
    verdict = found.verdict if found is not None and by_layers else row.verdict
    reason = found.reason if found is not None and by_layers else row.reason
    outcome = TestOutcome.PASSED if result.exit_code_of(row) == ExitCode.EQUIVALENT else TestOutcome.FAILED
    if verdict is None:
        outcome = TestOutcome.SKIPPED if row.problem is None or without_device(row) else TestOutcome.ERROR
    names = {} if found is None else names_of(found)
    return Target(
        row=row,
        name=name_of(row, result),
        source=known.get(row.reference or row.model, row.reference or row.model),
        outcome=outcome,
        word=word_of(row, verdict),
        reason=quoted(reason, names=names),
        repaired=row.repaired.is_right,
        findings=tuple(findings_of(found)) if found is not None else (),
    )


def findings_of(found: Localization) -> Iterator[TargetFinding]:
    """Rules, then the faults that are alone.

    Args:
        found: In a target.
    """
    for rule in found.rules:
        yield TargetFinding(kind=str(rule.kind), words=quoted(rule.text), layers=rule.layers)
    for fault in found.alone:
        figures = ("introduced_error", "full_run_error", "noise_floor", "confidence")
        yield TargetFinding(
            kind=str(fault.kind),
            words=quoted(fault.words, names=names_of_fault(fault)),
            layers=fault.places,
            figures=tuple((name, float(getattr(fault, name))) for name in figures),
        )

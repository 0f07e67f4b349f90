"""What is told of rows: the same targets, faults and verdicts on the page, for programs, and of two runs."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from xml.etree import ElementTree as ET

import localizations
import told_runs

from conrepair.application.report.changes.changes import targets_as_left
from conrepair.application.report.machine.junit import junit_xml
from conrepair.application.report.page.sections import sections
from conrepair.application.report.result import AuditResult, Problem, Row
from conrepair.application.report.told import Outcome, state_of_row, target_rows, told_of, word_of
from conrepair.ground.runtime.processes.workers import NO_DEVICE
from conrepair.verdicts.evaluate.verdict import Verdict


def audited(folder: Path) -> AuditResult:
    """A source in its library, where it answers otherwise, where it fails, and on a device that is missing."""
    rows = [
        Row(model="net", conversion="", backend="libraries", kind="reference"),
        Row(model="net", conversion="", backend="tvm", kind="reference", verdict=Verdict.FAULTY, reason="other"),
        Row(model="net", conversion="", backend="ort", kind="reference", problem=Problem(message="it failed")),
        Row(
            model="net", conversion="", backend="gpu", kind="reference", problem=Problem(message="x", kind=NO_DEVICE)
        ),
    ]
    run = localizations.run_of(localizations.made(1), localizations.about(), folder)
    return dataclasses.replace(run, kind="audit", rows=tuple(rows))


def test_a_source_on_another_backend_is_a_target_for_everybody(tmp_path: Path) -> None:
    result = audited(tmp_path)
    assert [row.backend for row in target_rows(result)] == ["tvm", "ort", "gpu"]
    assert [word_of(row, row.verdict) for row in target_rows(result)] == ["faulty", "error", "no device"]
    assert [section.word for section in sections(result, None)] == ["faulty", "error", "no device"]
    assert [key[2] for key in targets_as_left(result)] == ["tvm", "ort", "gpu"]
    suites = ET.fromstring(junit_xml(result))  # noqa: S314 (our own)
    assert [suites.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["3", "1", "1", "1"]


def test_a_target_that_fails_is_accused_of_its_faults_or_of_its_verdict() -> None:
    found = localizations.made(3, {1: 0.5})
    localized = localizations.run_of(found, localizations.about()).rows[0].localized
    run = told_runs.audit(
        told_runs.row("wrong", Verdict.FAULTY, localized=localized),
        told_runs.row("doubtful", Verdict.UNDECIDED),
        told_runs.row("right", Verdict.NOISE),
        told_runs.row("refused", problem=Problem(message="Foo isn't known")),
    )
    wrong, doubtful, right, refused = told_of(run)
    assert [(item.kind, item.layers, item.fault) for item in wrong.accused] == [
        ("hyperparameters", found.faults[0].target_layers, found.faults[0])
    ]
    assert [(item.kind, item.words) for item in doubtful.accused] == [("undecided", "as it is")]
    assert right.accused == refused.accused == ()
    assert refused.judgement.kind == "error"
    outcomes = [target.outcome for target in (wrong, doubtful, right, refused)]
    assert outcomes == [Outcome.FAILED, Outcome.FAILED, Outcome.PASSED, Outcome.ERROR]
    assert [state_of_row(row) for row in run.rows] == ["wrong", "warning", "right", "wrong"]

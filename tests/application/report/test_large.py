"""Reports of results with thousands of rows, layers and faults: what they take grows as they do."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

import localizations
import pytest
import told_runs

from conrepair.application.report.page.page import page_html
from conrepair.application.report.result import AuditResult
from conrepair.application.report.texts import texts_of
from conrepair.diagnosis.localization.result import Rule
from conrepair.verdicts.evaluate.verdict import Verdict


def many_rows(count: int) -> AuditResult:
    rows = [told_runs.row(f"net{place}", Verdict.FAULTY, backend=f"on{place}") for place in range(count)]
    return told_runs.audit(*rows)


def many_conversions(count: int) -> AuditResult:
    """A list of architectures, each with routes of its own."""
    run = many_rows(count)
    rows = [dataclasses.replace(row, conversion=f"by{place}") for place, row in enumerate(run.rows)]
    return dataclasses.replace(run, rows=tuple(rows), architectures=tuple(row.model for row in rows))


def many_faults(count: int) -> AuditResult:
    """Each with a rule of its own, and a name that is too long to be read."""
    found = localizations.made(count, dict.fromkeys(range(count), 0.5))
    faults = tuple(
        dataclasses.replace(fault, target_layers=(f"{'n' * 60}{place}",)) for place, fault in enumerate(found.faults)
    )
    rules = tuple(Rule(fault.kind, f"rule {place}", fault.target_layers) for place, fault in enumerate(faults))
    found = dataclasses.replace(found, faults=faults, rules=rules)
    return localizations.run_of(found, localizations.about())


@pytest.mark.parametrize("made", [many_rows, many_conversions, many_faults])
@pytest.mark.slow
def test_ten_times_as_much_takes_ten_times_as_long(made: Callable[[int], AuditResult]) -> None:
    """Not a hundred times: so much it was when each row was looked for among all."""

    def seconds(count: int) -> float:
        run, started = made(count), time.process_time()
        texts_of(run)
        page_html(run)
        return time.process_time() - started

    seconds(10)  # what is loaded once
    assert seconds(4000) < 30 * seconds(400)

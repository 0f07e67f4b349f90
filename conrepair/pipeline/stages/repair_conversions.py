"""Find other ways for conversions that gave nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from functools import partial

from conrepair.evaluate.verdict import Verdict
from conrepair.pipeline.evaluation import Execution
from conrepair.pipeline.plan import chains
from conrepair.pipeline.stages.attempts import Attempts
from conrepair.pipeline.stages.conversion_repair import ConversionRepairer, Failed, attempt_seconds
from conrepair.pipeline.stages.route import trial_of, try_route
from conrepair.pipeline.stages.state import RunState
from conrepair.pipeline.subject import Subject
from conrepair.repairs.conversion.remedies import RouteStep
from conrepair.report.result import Row
from conrepair.runtime.workers import STORAGE

__all__ = ["repair_conversions"]


def repair_conversions(
    state: RunState, executed: Sequence[Execution], rows: Sequence[Row]
) -> tuple[list[Execution], tuple[Row, ...]]:
    """Find other ways for conversions that gave nothing; what they make is judged like all else."""
    items, result = list(executed), list(rows)
    wanted = [(row, failed) for subject in state.subjects for row, failed in _failed(state, subject, executed, rows)]
    attempts = Attempts(state.scheduler, attempt_seconds(state.settings))
    with state.display.stage("repair conversions", len(wanted)) as stage:
        for row, failed in wanted:
            whose = state.subject(row.model)
            repairer = ConversionRepairer(
                attempts, partial(try_route, state, whose, executed), state.settings.repair.seconds
            )
            tried, trial = repairer.repair(failed)
            place = result.index(row)
            result[place] = dataclasses.replace(row, mending=tried)
            if trial is not None:
                new = [item for item in trial.executed if item.row_name not in {other.row_name for other in items}]
                more = [made for made in trial.rows if made.name in {item.row_name for item in new}]
                items[place + 1 : place + 1] = new
                result[place + 1 : place + 1] = [
                    dataclasses.replace(made, instead_of=row.conversion if made.kind == "target" else "")
                    for made in more
                ]
            stage.advance(row.name)
    return items, tuple(result)


def _failed(
    state: RunState, subject: Subject, executed: Sequence[Execution], rows: Sequence[Row]
) -> Iterator[tuple[Row, Failed]]:
    """The routes of a model that end without one, each with its first row."""
    for chain in chains(state.conversions[subject.name]):
        row = next((row for row in rows if row.name == chain[-1].name), None)
        if row is None or row.verdict is not Verdict.UNDEPLOYABLE:
            continue
        trial = trial_of(state, subject, chain)
        if trial.failure is None:  # it was made, and doesn't run
            results = [item.result for item in executed if item.row_name == row.name and item.result is not None]
            failure = next((result.failure for result in results if result.failure is not None), None)
            trial = dataclasses.replace(trial, failure=failure, place=len(chain) - 1, ran=True)
        if trial.failure is None or trial.failure.kind == STORAGE:  # no other way needs less of a full disk
            continue
        if row.problem is not None and not row.problem.circumstance:
            yield row, Failed(tuple(RouteStep(item.step, item.changed) for item in chain), trial)

"""Run repaired targets on what the targets ran on: how each input is answered before and after."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from conrepair.data.pictures.recipe import Recipe
from conrepair.frameworks.model import from_json
from conrepair.pipeline.evaluation import Execution, answers_again
from conrepair.pipeline.stages.execution import Runs, plan_execution, run_executions
from conrepair.pipeline.stages.state import RunState
from conrepair.repairs.result import RepairResult
from conrepair.report.result import Row

__all__ = ["with_answers"]


def with_answers(state: RunState, executed: Sequence[Execution], rows: Sequence[Row]) -> list[Row]:
    """Rows with the answers of what was made of their targets, to the inputs that they have.

    A repair is verified on samples that took no part in it, and so never runs on most of these.

    Args:
        state: The run.
        executed: What ran.
        rows: Their rows, with what became of their repairs.
    """
    runs, items = Runs(), {}
    for place, row in enumerate(rows):
        done = row.repaired.result
        if row.inputs and done is not None and done.edits and not done.interrupted:
            items[place] = _planned(state, executed[place], done, runs)
    result = list(rows)
    if items:
        run_executions(state, list(items.values()), runs)
    for place, item in items.items():
        row = rows[place]
        reference = next(one for one in executed if one.model == item.reference and one.kind == "reference")
        inputs = answers_again(state.settings, reference, item, row, state.datasets.get(item.model))
        result[place] = dataclasses.replace(row, repaired=dataclasses.replace(row.repaired, inputs=inputs))
        if not inputs:
            failure = None if item.result is None else item.result.failure
            why = item.problem.message if item.problem is not None else failure or "it has no such output"
            state.notes.append(f"{row.label} on {row.backend}: the repaired target's answers aren't known: {why}")
    return result


def _planned(state: RunState, item: Execution, done: RepairResult, runs: Runs) -> Execution:
    """The execution of a repaired target, which is fed by the repair's recipe where there's one."""
    if item.source is None:
        raise ValueError("what wasn't there wasn't repaired")
    subject, source, on = state.subject(item.model), item.source, item.on
    if done.recipe is not None:
        fields = {name: value for name, value in done.recipe.items() if name != "base"}
        subject = dataclasses.replace(subject, recipe=from_json(Recipe, {"name": "repaired", **fields}))
    if done.model is not None and item.build is not None:
        on = dataclasses.replace(on, options={**on.options, "built": done.model.path})
    elif done.model is not None:
        source = dataclasses.replace(source, model=done.model)
    name = "+".join(filter(None, (item.conversion, "repaired")))
    repaired = Execution(item.model, item.reference, name, on, "target", source, asked=item.asked, origin=item.origin)
    repaired.converted = item.converted
    plan_execution(state, subject, item.made, repaired, on, runs)
    return repaired

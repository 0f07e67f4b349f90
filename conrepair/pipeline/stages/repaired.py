"""Run repaired targets where the targets ran, on what they ran on: how each input is answered before and after."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from conrepair.data.pictures.recipe import Recipe
from conrepair.frameworks.model import from_json
from conrepair.pipeline.evaluation import Execution, judged_again
from conrepair.pipeline.stages.execution import Runs, plan_execution, run_executions
from conrepair.pipeline.stages.state import RunState
from conrepair.repairs.result import RepairResult
from conrepair.report.result import Row

__all__ = ["with_answers"]


def with_answers(state: RunState, executed: Sequence[Execution], rows: Sequence[Row]) -> list[Row]:
    """Rows with the verdict on what was made of their targets, and its answers to the inputs that they have.

    A repair is verified on samples that took no part in it, and so never runs on most of these. A target that ran on
    several backends is repaired once, and the repaired one runs on all of them.

    Args:
        state: The run.
        executed: What ran.
        rows: Their rows, with what became of their repairs.
    """
    runs, items = Runs(), {}
    for place, row in enumerate(rows):
        done = row.repaired.result
        if done is not None and done.edits and not done.interrupted:
            for other in [place] if executed[place].build is not None else _beside(executed, rows, place):
                items[other] = _planned(state, executed[other], done, runs)
    result = list(rows)
    if items:
        run_executions(state, list(items.values()), runs)
    for place, item in items.items():
        row = rows[place]
        reference = next(one for one in executed if one.model == item.reference and one.kind == "reference")
        repaired = judged_again(state.settings, reference, item, row, state.datasets.get(item.model))
        result[place] = dataclasses.replace(row, repaired=repaired)
        if repaired.verdict is None:
            failure = None if item.result is None else item.result.failure
            why = item.problem.message if item.problem is not None else failure or "it has no such output"
            state.notes.append(f"{row.label} on {row.backend}: the repaired target's answers aren't known: {why}")
    return result


def _beside(executed: Sequence[Execution], rows: Sequence[Row], place: int) -> Iterator[int]:
    """The rows of a target on all backends that take its file as it is, but for those with a repair of their own."""
    for other, (item, row) in enumerate(zip(executed, rows, strict=True)):
        same = item.row_name == executed[place].row_name and row.verdict is not None and not item.via
        if other == place or (same and row.repaired.result is None):
            yield other


def _planned(state: RunState, item: Execution, done: RepairResult, runs: Runs) -> Execution:
    """The execution of a repaired target, which is fed by the repair's recipe where there's one."""
    if item.source is None:
        raise ValueError("what wasn't there wasn't repaired")
    subject, source, on = state.subject(item.model), item.source, item.on
    if done.recipe is not None:
        fields = {name: value for name, value in done.recipe.items() if name != "base"}
        subject = dataclasses.replace(subject, recipe=from_json(Recipe, {"name": "repaired", **fields}))
    if done.model is not None and done.model.framework == "tvm":
        on = dataclasses.replace(on, options={**on.options, "built": done.model.path})
    elif done.model is not None:
        source = dataclasses.replace(source, model=done.model)
    name = "+".join(filter(None, (item.conversion, "repaired")))
    repaired = Execution(item.model, item.reference, name, on, "target", source, asked=item.asked, origin=item.origin)
    repaired.converted = item.converted
    plan_execution(state, subject, item.made, repaired, on, runs)
    return repaired

"""Measure sources' rounding a second time, where a verdict depends on it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from conrepair.engine.scheduler import Task
from conrepair.pipeline.evaluation import Execution
from conrepair.pipeline.stages.localizing import localization_side, options_of
from conrepair.pipeline.stages.state import RunState
from conrepair.report.result import Row

__all__ = ["measure_rounding"]


def measure_rounding(state: RunState, executed: Sequence[Execution], rows: Sequence[Row]) -> bool:
    """Round each tensor of a source a little more, and keep what that does to its outputs.

    A source differs from itself in another arithmetic by what's rounding, or by a fault of that arithmetic: only a
    measurement by other means tells. It takes about as long as opening a model for a localization does, so it's made
    where a verdict may be another for it.

    Args:
        state: The run.
        executed: What ran; sources receive what is measured.
        rows: What was judged without it.

    Returns:
        Whether anything was measured.
    """
    if not state.settings.stages.execute:
        return False
    wanted = {row.reference for row in rows if row.comparison is not None and row.comparison.open}
    items = [
        item
        for item in executed
        if item.kind == "reference"
        and item.model in wanted
        and item.second_task
        and state.steps_of(state.subject(item.model)) == 1  # layers are looked at one step at a time
    ]
    tasks = {item.model: _task(state, item) for item in items}
    state.run("measure rounding", tasks.values())
    for item in items:
        entry = state.scheduler.results[tasks[item.model].name].entry
        item.rounding = entry if entry is not None and entry.result["outputs"] else None
    return any(item.rounding is not None for item in items)


def _task(state: RunState, item: Execution) -> Task:
    subject = state.subject(item.model)
    if item.source is None:
        raise ValueError("what didn't run has no rounding")
    source = localization_side(
        item.source, subject.open_sizes_filled(item.source), *state.data_for(subject, item.source)
    )
    settings = dataclasses.asdict(options_of(state.settings, None, subject.limits))
    payload = {"source": source, "options": settings}
    return state.task(f"{item.row_name}, rounding", "rounding", payload, item.source)

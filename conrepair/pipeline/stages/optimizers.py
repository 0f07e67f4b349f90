"""Name the optimization of a runtime by which a model gives something else than its file says."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from conrepair.engine.scheduler import Task
from conrepair.evaluate.verdict import Verdict
from conrepair.pipeline.compiling import device_of
from conrepair.pipeline.evaluation import Execution
from conrepair.pipeline.settings import DEPLOYED
from conrepair.pipeline.stages.execution import execution_of
from conrepair.pipeline.stages.state import RunState
from conrepair.report.result import Row
from conrepair.runtime.reach import CONFINED

__all__ = ["name_optimizers"]


def name_optimizers(state: RunState, executed: Sequence[Execution], rows: Sequence[Row]) -> tuple[Row, ...]:
    """Say of models that are wrong as they're deployed, and only then, which optimization makes them so.

    Args:
        state: The run.
        executed: What ran.
        rows: What was judged; one for each of these.

    Returns:
        The rows, with what was found in their reasons.
    """
    if not (state.settings.stages.execute and state.settings.stages.evaluate):
        return tuple(rows)
    tasks = {
        place: _task(state, item)
        for place, (item, row) in enumerate(zip(executed, rows, strict=True))
        if item.kind == "reference" and item.on.name == DEPLOYED.name and row.verdict is Verdict.FAULTY
        if device_of(item.on.name, item.on.options) == CONFINED and item.on.in_release is None
    }
    if not tasks:
        return tuple(rows)
    state.run("name optimizations", tasks.values())
    found = list(rows)
    for place, task in tasks.items():
        entry = state.scheduler.results[task.name].entry
        names = [] if entry is None else entry.result["names"]
        if names:
            off = " and ".join(f"`{name}`" for name in names)
            words = f"{rows[place].reason}; with {off} of ONNX Runtime off it gives what the file says"
            found[place] = dataclasses.replace(rows[place], reason=words)
    return tuple(found)


def _task(state: RunState, item: Execution) -> Task:
    subject, source = state.subject(item.model), item.source
    if source is None:
        raise ValueError("what didn't run can't be wrong")
    payload = execution_of(state, subject, source, item.on)
    return state.task(f"{item.row_name}@{item.backend}, optimizations", "optimizers", payload, source)

"""Find the routes of every source, and take them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conrepair.data.tensor_spec import TensorSpec
from conrepair.engine.place import make_environments
from conrepair.engine.scheduler import Task
from conrepair.jobs.values import ConversionStep
from conrepair.pipeline.plan import Conversion, plan_conversions
from conrepair.pipeline.sources import model_of
from conrepair.pipeline.stages.state import RunState
from conrepair.pipeline.subject import Subject
from conrepair.runtime.store import Entry


def plan(state: RunState) -> None:
    """Find the routes of every source."""
    for subject in state.subjects:
        if subject.source is not None:
            found = plan_conversions(subject.name, subject.goals, subject.source.model)
            state.conversions[subject.name], state.impossible[subject.name] = found


def convert(state: RunState) -> None:
    """Run all conversions, side by side."""
    tasks = [
        conversion_task(state, subject, conversion, subject.inputs(subject.source))
        for subject in state.subjects
        if subject.source is not None
        for conversion in state.conversions[subject.name]
    ]
    off = not state.settings.stages.convert
    state.run("convert", tasks, "stage convert is off, and no earlier run made this conversion" if off else "")
    for name, planned in state.conversions.items() if off else ():
        state.conversions[name] = [item for item in planned if state.scheduler.results[item.name].entry]


def conversion_task(
    state: RunState, subject: Subject, conversion: Conversion, inputs: tuple[TensorSpec, ...]
) -> Task:
    """One step of a route, as a task behind the one that makes its source."""
    step = conversion.step
    calibrates = step.calibrates(conversion.options) > 0

    def payload(entries: Mapping[str, Entry]) -> dict[str, Any]:
        parent = model_of(entries[conversion.parent])
        data = state.data_for(subject, parent) if calibrates else None
        told = ConversionStep.of(step, conversion.options, data)
        return {"model": parent.model.bare, "step": told, "inputs": inputs}

    task = Task(
        conversion.name,
        "convert",
        payload,
        depends=(conversion.parent,),
        needs=step.job_needs,
        timeout=state.settings.seconds,
        # Whether data can be read depends on more than the payload: the photos are still being decoded.
        keep_failure=not calibrates,
        prepare=lambda: make_environments(step.job_needs, state.display),
    )
    return state.kept(task)

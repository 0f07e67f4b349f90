"""Run every model on every backend."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from conrepair.backends.registry import backend
from conrepair.config.model import BackendConfig
from conrepair.frameworks.model import to_json
from conrepair.pipeline.evaluation import Executed
from conrepair.pipeline.plan import Conversion
from conrepair.pipeline.scheduler import Task
from conrepair.pipeline.sources import Source, framework_needs
from conrepair.pipeline.stages.state import State, Subject, problem_from
from conrepair.report.result import Problem
from conrepair.runtime.errors import ConrepairError

__all__ = ["execute", "plan_conversion", "run_executions"]

_SECOND_OPINION_SAMPLES = 16


def execute(state: State) -> list[Executed]:
    """Run every model on every backend, one at a time so that times mean something."""
    executed: list[Executed] = []
    tasks: list[Task] = []
    for subject in state.subjects:
        executed += _plan_executions(state, subject, tasks)
    run_executions(state, executed, tasks)
    return executed


def run_executions(state: State, executed: Sequence[Executed], tasks: Sequence[Task]) -> None:
    """Run tasks, and hand their results to the executions that they belong to."""
    if state.config.stages.execute:
        with state.display.stage("execute", len(tasks)) as stage:
            state.scheduler.run(tasks, side_by_side=1, advance=stage.advance)
    else:
        state.scheduler.take_stored(tasks, "stage execute is off, and no earlier run did it")
        for item in executed:
            if item.task is not None and state.scheduler.results[item.task].entry is None:
                item.task = None  # a row without a run, not a failure
    unreadable = state.photos.wait()
    for item in executed:
        if item.task is not None:
            item.result = state.scheduler.results[item.task]
            dataset = state.datasets.get(item.model)
            if item.result.entry is None and dataset is not None and dataset.sha256 in unreadable:
                item.problem = problem_from(unreadable[dataset.sha256])
        if item.second_task is not None:
            item.second = state.scheduler.results[item.second_task].entry


def _plan_executions(state: State, subject: Subject, tasks: list[Task]) -> list[Executed]:
    reference = subject.config.compare_with or subject.config.name
    kind = "target" if subject.config.compare_with else "reference"
    result = [
        _plan_execution(state, subject, reference, "", kind, config, subject.source, subject.problem, tasks)
        for config in _backends(state, subject.source)
    ]
    for wanted, error in subject.impossible.items():
        item = Executed(
            subject.config.name, reference, wanted, state.config.backends[0].name, "target", None, problem_from(error)
        )
        result.append(item)
    for conversion in subject.conversions:
        result += plan_conversion(state, subject, reference, conversion, tasks)
    return result


def plan_conversion(
    state: State, subject: Subject, reference: str, conversion: Conversion, tasks: list[Task]
) -> list[Executed]:
    """The executions of what a conversion made, on every backend."""
    made, problem = state.outcome(conversion.name)
    kind = "target" if conversion.final else "intermediate"
    result = []
    for config in _backends(state, made):
        item = _plan_execution(state, subject, reference, conversion.route, kind, config, made, problem, tasks)
        item.asked = conversion.asked
        item.origin = subject.source.description.precision if subject.source is not None else None
        result.append(item)
    return result


def _backends(state: State, source: Source | None) -> list[BackendConfig]:
    """The configured backends that run a model; its own library where none does.

    A model that wasn't made gets one row, on the first.
    """
    if source is None:
        return list(state.config.backends[:1])
    willing = [config for config in state.config.backends if backend(config.name).refuses(source.model) is None]
    return willing or [BackendConfig(name="libraries")]


def _plan_execution(
    state: State,
    subject: Subject,
    reference: str,
    conversion: str,
    kind: str,
    config: BackendConfig,
    source: Source | None,
    problem: Problem | None,
    tasks: list[Task],
) -> Executed:
    executed = Executed(subject.config.name, reference, conversion, config.name, kind, source, problem)
    if source is None or problem is not None:
        return executed
    name = f"{executed.row_name}@{config.name}"
    options = config.model_dump(exclude={"name"}) if config.name != "libraries" else {}
    try:
        payload = _execution(state, subject, source, config.name, options)
    except ConrepairError as error:
        executed.problem = problem_from(error)
        return executed
    tasks.append(_execution_task(state, name, source, payload))
    executed.task = name
    if kind == "reference" and config == _backends(state, source)[0]:
        second = payload | {
            "backend": "libraries",
            "options": {"second_opinion": True},
            "limit": _SECOND_OPINION_SAMPLES,
        }
        executed.second_task = f"{name}, second opinion"
        tasks.append(_execution_task(state, executed.second_task, source, second))
    return executed


def _execution_task(state: State, name: str, source: Source, payload: dict[str, Any]) -> Task:
    task = Task(
        name,
        "execute",
        lambda _: payload,
        needs=framework_needs(source.model.framework),
        timeout=state.config.limits.seconds,
    )
    return state.kept(task)


def _execution(
    state: State, subject: Subject, source: Source, backend_name: str, options: Mapping[str, Any]
) -> dict[str, Any]:
    data, recipe = state.data_for(subject, source)
    return {
        "model": to_json(dataclasses.replace(source.model, provenance=None)),
        "backend": backend_name,
        "options": dict(options),
        "data": to_json(data),
        "recipe": None if recipe is None else dataclasses.asdict(recipe),
        "batch_size": state.config.batch_size,
        "limit": None,
    }

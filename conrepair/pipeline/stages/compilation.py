"""Convert models for backends that read other formats, and compile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from conrepair.backends.all_backends import backend
from conrepair.engine.scheduler import Task
from conrepair.pipeline.compiling import compile_payload, compile_progress, device_of, plan_preparation
from conrepair.pipeline.settings import AS_IT_IS, DEPLOYED, LIBRARIES, BackendChoice
from conrepair.pipeline.stages.conversion import conversion_task
from conrepair.pipeline.stages.state import RunState
from conrepair.pipeline.subject import LoadedModel, Subject
from conrepair.report.result import Problem
from conrepair.runtime.errors import ConrepairError

__all__ = ["backends_of", "compile_builds", "compile_task", "models_of", "prepare"]

Made = tuple[Subject, str, LoadedModel]
"""A model, the task that made it or what was converted from it, and that."""


def backends_of(subject: Subject, source: LoadedModel | None) -> list[BackendChoice]:
    """The configured backends that run a model or a conversion of it, compilers last.

    Its own library runs it where none but compilers and optimizers do: what those make is judged against the model
    as it is, so there's a row of that. A model that wasn't made gets one row, on the first backend.
    """
    configured = subject.backends
    if source is None:
        return list(configured[:1])
    willing = [config for config in configured if backend(config.name).refuses(source.model) is None]
    plain = [config for config in willing if config.name in AS_IT_IS]
    compilers = [config for config in willing if config not in plain]
    changed = all(config.name == DEPLOYED.name for config in plain)
    return [*([LIBRARIES] if changed else []), *plain, *compilers]


def models_of(state: RunState) -> Iterator[Made]:
    """All models that there are after conversion."""
    for subject in state.subjects:
        if subject.source is None:
            continue
        yield subject, subject.name, subject.source
        for item in state.conversions[subject.name]:
            made, _ = state.outcome(item.name)
            if made is not None:
                yield subject, item.name, made


def prepare(state: RunState, models: Iterable[Made]) -> None:
    """Convert models for backends that read other formats; what came of it is in `RunState.prepared`."""
    tasks: dict[str, Task] = {}
    for subject, name, source in models:
        for config in backends_of(subject, source):
            tasks |= _plan(state, subject, name, source, config)
    unmade = [task for name, task in tasks.items() if name not in state.scheduler.results]
    if not (state.settings.stages.convert and state.settings.stages.execute):
        state.scheduler.take_stored(unmade, "no earlier run made this conversion")
    elif unmade:
        state.run("convert", unmade)


def _plan(
    state: RunState, subject: Subject, name: str, source: LoadedModel, config: BackendChoice
) -> dict[str, Task]:
    if subject.source is None:
        return {}
    try:
        found = plan_preparation(name, source.model, config)
    except ConrepairError as error:
        state.prepared[name, config.label] = Problem.of(error)
        return {}
    state.prepared[name, config.label] = found
    inputs = subject.inputs(subject.source)
    conversions = found.conversions if found else ()
    return {item.name: conversion_task(state, subject, item, inputs) for item in conversions}


def compile_task(
    state: RunState,
    subject: Subject,
    name: str,
    source: LoadedModel,
    config: BackendChoice,
    options: Mapping[str, Any],
) -> Task:
    """The compilation of a model, or of a conversion of it, for a backend."""
    batch_size = subject.batch_size
    payload = compile_payload(source.model, config, options, batch_size, runs=True)
    task = state.task(
        name,
        "compile",
        payload,
        source,
        needs={config.name},
        alone=options.get("setting") == "tuned",
        progress=compile_progress(config),
        device=device_of(config.name, options),
        environment=backend(config.name).environment(options),
    )
    return state.kept(task)


def compile_builds(state: RunState, builds: Sequence[Task]) -> None:
    """Compile; what measures on the way (tuning) alone."""
    if not builds:
        return
    if not state.settings.stages.execute:
        state.scheduler.take_stored(builds, "stage execute is off, and no earlier run compiled this")
        return
    state.run("compile", builds)

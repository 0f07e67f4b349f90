"""Convert models for backends that read other formats, and compile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from conrepair.application.engine.task import Task
from conrepair.application.jobs.values import ConversionStep
from conrepair.application.pipeline.plan import Conversion, plan_conversions, plan_preparation
from conrepair.application.pipeline.settings import AS_IT_IS, DEPLOYED, LIBRARIES, BackendChoice
from conrepair.application.pipeline.stages.state import RunState, model_of
from conrepair.application.pipeline.subject import Subject
from conrepair.application.report.result import Problem
from conrepair.formats.backends.all_backends import backend, compiler
from conrepair.formats.models.formats import framework_needs
from conrepair.formats.models.model import LoadedModel, Model
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import ConrepairError
from conrepair.ground.runtime.files.store import Entry


def plan(state: RunState) -> None:
    """Find the routes of every source."""
    for subject in state.subjects:
        if subject.source is not None and subject.goals:
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
    state.run("converting", tasks, "stage convert is off, and no earlier run made this conversion" if off else "")
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
    )
    return state.kept(task)


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
    willing = [config for config in configured if not refusal(config, source.model)]
    plain = [config for config in willing if config.name in AS_IT_IS]
    compilers = [config for config in willing if config not in plain]
    changed = all(config.name == DEPLOYED.name for config in plain)
    return [*([LIBRARIES] if changed else []), *plain, *compilers]


def refusal(config: BackendChoice, model: Model) -> str:
    """Why a backend doesn't run a model; "" where it does, or is one of all and takes what's converted for it."""
    place = backend(config.name)
    converts = config.converts and place.takes(model, config.options) != model.framework
    return "" if converts else place.refuses(model) or ""


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
    wanted = state.settings.stages.convert and state.settings.stages.execute
    state.run("converting", unmade, "" if wanted else "no earlier run made this conversion")


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
    return {item.name: conversion_task(state, subject, item, inputs) for item in found}


def compile_task(
    name: str,
    model: Model,
    config: BackendChoice,
    options: Mapping[str, Any],
    *,
    batch_size: int,
    seconds: float,
    runs: bool = True,
) -> Task:
    """The compilation of a model.

    Args:
        name: Of the task.
        model: In the format that the backend takes.
        config: The backend, a compiler.
        options: From `backend_options`.
        batch_size: For models that leave it open.
        seconds: That it may take.
        runs: Whether the build is run afterwards, so that its device must be there.
    """
    payload = {
        "model": model.bare,
        "backend": config.name,
        "options": {**options, "check_device": runs},
        "batch_size": batch_size,
    }
    return Task(
        name,
        "compile",
        lambda _: payload,
        needs=framework_needs(model.framework) | {config.name},
        timeout=seconds,
        alone=options.get("setting") == "tuned",
        progress=partial(compiler(config.name).progress, config.options),
        device=backend(config.name).reach(options),
        environment=backend(config.name).environment(options),
    )

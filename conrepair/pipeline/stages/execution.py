"""Run every model on every backend."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from conrepair.backends.all_backends import COMPILERS, backend
from conrepair.engine.place import make_environments
from conrepair.engine.scheduler import Task
from conrepair.frameworks.formats import RECORDED, framework_needs
from conrepair.frameworks.model import LoadedModel
from conrepair.jobs.values import Compiled, RunRecord, RunRequest
from conrepair.pipeline.compiling import backend_options
from conrepair.pipeline.evaluation import Execution
from conrepair.pipeline.plan import Conversion
from conrepair.pipeline.settings import AS_IT_IS, BackendChoice
from conrepair.pipeline.stages.compilation import backends_of, compile_task
from conrepair.pipeline.stages.state import RunState, problem_of
from conrepair.pipeline.subject import Subject
from conrepair.report.result import Problem
from conrepair.runtime.errors import ConrepairError
from conrepair.runtime.reach import CONFINED
from conrepair.runtime.store import Entry

_SECOND_OPINION_SAMPLES = 16
_BOOKKEEPING = {"onnx.infer", "onnx.quant.pre_process", "min_runtime_version", "CONVERSION_METADATA"}  # of converters


def execute_sources(state: RunState) -> list[Execution]:
    """Run every model that needs no conversion for it, in its own library or another's that compiles nothing."""
    subjects = []
    for subject in state.subjects:
        if subject.source is not None:
            plain = [choice for choice in backends_of(subject, subject.source) if choice.name in AS_IT_IS]
            subjects.append(dataclasses.replace(subject, backends=tuple(plain)))
    return execute(state, subjects)


def execute(state: RunState, subjects: Sequence[Subject]) -> list[Execution]:
    """Compile, and run models on every backend, with what's made of them."""
    executed, tasks = planned(state, subjects)
    run_executions(state, executed, tasks)
    return executed


def planned(state: RunState, subjects: Sequence[Subject]) -> tuple[list[Execution], list[Task]]:
    """What is to run on which backend, of models and what's made of them, and the tasks that do it."""
    tasks: list[Task] = []
    executed = [item for subject in subjects for item in _plan_executions(state, subject, tasks)]
    return executed, tasks


def run_executions(state: RunState, executed: Sequence[Execution], tasks: Sequence[Task]) -> None:
    """Run the tasks that weren't, and hand their results to the executions that they belong to."""
    done = state.scheduler.results
    undone = [task for task in tasks if task.name not in done]
    builds, runs = ([task for task in undone if (task.kind == "compile") is first] for first in (True, False))
    off = not state.settings.stages.execute
    state.run("compile", builds, "stage execute is off, and no earlier run compiled this" if off else "")
    state.run(
        "execute",
        runs,
        "stage execute is off, and no earlier run did it" if off else "",
    )
    for item in executed if off else ():
        if item.task is not None and done[item.task].entry is None:
            item.task = None  # a row without a run, not a failure
    unreadable = state.photos.wait()
    for item in executed:
        if item.task is not None:
            item.result = done[item.task]
            dataset = state.datasets.get(item.model)
            if item.result.entry is None and dataset is not None and dataset.sha256 in unreadable:
                item.problem = Problem.of(unreadable[dataset.sha256])
            _tell_matching(state, item)
        if item.second_task is not None:
            item.second = done[item.second_task].entry
        if item.build_task is not None:
            item.build = done[item.build_task].entry
            if item.build is None:
                item.problem = problem_of(done[item.build_task])
    for item in executed:
        item.refused = _refused(state, item, executed)
    tell_files(state, executed)


def _refused(state: RunState, item: Execution, executed: Sequence[Execution]) -> str:
    """The numbers of samples that a target fails with, and its reference doesn't, in words."""
    if item.result is None or item.result.entry is None or item.kind != "target":
        return ""
    refused = item.result.entry.read(RunRecord).refused
    one = next((other for other in executed if other.kind == "reference" and other.model == item.reference), None)
    if not refused or one is None or one.source is None or one.result is None or one.result.entry is None:
        return ""
    most = max(refused)
    request = execution_of(state, state.subject(one.model), one.source, one.on)
    request = dataclasses.replace(request, batch_size=most, limit=most, other_batches=True)
    task = _execution_task(state, f"{one.task}, other batches", one.source, request)
    entry = state.made(task)
    known = {} if entry is None else entry.read(RunRecord).refused
    left = {size: words for size, words in refused.items() if size not in known}
    if not left or entry is None:
        return ""
    listed = ", ".join(map(str, sorted(left)))
    words = _baked(state, item) or left[min(left)]
    return f"its inputs leave the batch open, and batches of {listed} fail: {words}"


def _baked(state: RunState, item: Execution) -> str:
    """What in a target's file holds it to one number of samples, in words; "" where that isn't found."""
    if item.source is None:
        return ""
    request = execution_of(state, state.subject(item.model), item.source, item.on)
    task = state.task(f"{item.task}, shapes", "baked", {"request": request}, item.source)
    entry = state.made(task)
    return "" if entry is None else entry.read(str)


def tell_files(state: RunState, executed: Sequence[Execution]) -> None:
    """Note where two files of a format say other things about themselves, and what goes wrong elsewhere."""
    sources = {item.model: item.source for item in executed if item.kind == "reference"}
    for item in executed:
        right = sources.get(item.reference)
        if item.source is None or right is None or item.source is right:
            continue
        ours, theirs = right.description, item.source.description
        lines = list(theirs.warnings)
        for key in sorted((ours.metadata.keys() | theirs.metadata.keys()) - _BOOKKEEPING):
            one, two = (side.metadata.get(key, "missing") for side in (ours, theirs))
            if one != two and ours.format == theirs.format:
                lines.append(f"its metadata {key} is {two}, its source's {one}")
        state.notes += [note for line in lines if (note := f"{item.row_name}: {line}") not in state.notes]


def _tell_matching(state: RunState, item: Execution) -> None:
    """Note how data were fitted that somebody made for a specification; of a target, where it's a guess.

    A target's inputs may have other names and another layout than its source's: that's what conversions do.
    """
    if item.result is None or item.result.entry is None:
        return
    ran, seconds = item.result.entry.read(RunRecord), state.settings.compiled_seconds
    lines = [*ran.matching.guesses, *(ran.matching.others if item.kind == "reference" else ())]
    if seconds is not None and ran.count < ran.samples:
        lines.append(
            f"ran on {ran.count} of {ran.samples} samples on {item.backend}, as each takes "
            f"{ran.run_seconds / ran.count:.1f} s there and `limits.compiled_seconds` is {seconds:g}"
        )
    for line in lines:
        if (note := f"{item.row_name.removesuffix('/source')}: {line}") not in state.notes:
            state.notes.append(note)


def _plan_executions(state: RunState, subject: Subject, tasks: list[Task]) -> list[Execution]:
    reference = subject.reference
    kind = "target" if subject.compare_with else "reference"
    result = []
    for config in backends_of(subject, subject.source):
        item = Execution(subject.name, reference, "", config, kind, subject.source, subject.problem)
        item.made, item.converted = subject.name, subject.converted
        plan_execution(state, subject, item, tasks)
        result.append(item)
    for wanted, error in state.impossible[subject.name].items():
        first = subject.backends[0]
        result.append(Execution(subject.name, reference, wanted, first, "target", None, Problem.of(error)))
    for conversion in state.conversions[subject.name]:
        result += plan_conversion(state, subject, conversion, tasks)
    return result


def plan_conversion(state: RunState, subject: Subject, conversion: Conversion, tasks: list[Task]) -> list[Execution]:
    """The executions of what a conversion made, on every backend."""
    made, problem = state.outcome(conversion.name)
    kind = "target" if conversion.final else "intermediate"
    result = []
    for config in backends_of(subject, made):
        item = Execution(subject.name, subject.reference, conversion.route, config, kind, made, problem)
        item.made, item.asked = conversion.name, conversion.asked
        item.origin = subject.source.description.precision if subject.source is not None else None
        plan_execution(state, subject, item, tasks)
        result.append(item)
    return result


def plan_execution(state: RunState, subject: Subject, executed: Execution, tasks: list[Task]) -> None:
    """Add the tasks that run a model on a backend; what speaks against it is the item's problem.

    Args:
        state: Of the audit.
        subject: The configured model.
        executed: What is to be run.
        tasks: Receives what runs it.
    """
    source, original, config = executed.source, executed.source, executed.on
    if source is None or original is None or executed.problem is not None:
        return
    prepared = state.prepared.get((executed.made, config.label))
    if isinstance(prepared, Problem):
        executed.problem = prepared
        return
    if prepared:
        executed.via = prepared[-1].route
        source, executed.problem = state.outcome(prepared[-1].name)
    if source is None:
        return
    task_name = f"{executed.row_name}@{config.label}"
    if source.model.framework == RECORDED:
        tasks.append(_recorded_task(state, subject, task_name, source))
        executed.task = task_name
        return
    try:
        request = execution_of(state, subject, source, config)
        request = dataclasses.replace(request, other_batches=executed.kind == "target")
        if config.name in COMPILERS and config.in_release is None:
            build = compile_task(
                f"{task_name}, build",
                source.model,
                config,
                request.options,
                batch_size=subject.batch_size,
                seconds=state.settings.seconds,
            )
            tasks.append(state.kept(build))
            executed.build_task = build.name
            if state.settings.compiled_seconds is not None:
                request = dataclasses.replace(request, spend=state.settings.compiled_seconds)
    except ConrepairError as error:
        executed.problem = Problem.of(error)
        return
    tasks.append(_execution_task(state, task_name, source, request, executed.build_task))
    executed.task = task_name
    if executed.kind == "reference" and config == backends_of(subject, original)[0]:
        second = dataclasses.replace(
            request, backend="libraries", options={"second_opinion": True}, limit=_SECOND_OPINION_SAMPLES
        )
        executed.second_task = f"{task_name}, second opinion"
        tasks.append(_execution_task(state, executed.second_task, source, second))


def _recorded_task(state: RunState, subject: Subject, name: str, source: LoadedModel) -> Task:
    """Take the outputs that were computed elsewhere in place of running a model."""
    if subject.dataset is None:
        raise ValueError("nothing says which inputs these outputs are of")
    beside = [other for other in state.subjects if other.reference == subject.reference and other is not subject]
    known = [other.source.description.outputs for other in beside if other.source is not None]
    payload = {
        "model": source.model,
        "outputs": tuple(spec.name for spec in known[0]) if known else (),
        "samples": subject.dataset.count // state.steps_of(subject),
    }
    return state.task(name, "recorded", payload)


def _execution_task(
    state: RunState, name: str, source: LoadedModel, request: RunRequest, build_task: str | None = None
) -> Task:
    def complete(entries: Mapping[str, Entry]) -> dict[str, Any]:
        if build_task is None:
            return {"request": request}
        entry = entries[build_task]
        build = {"path": str(entry.folder), "sha256": entry.read(Compiled).sha256}
        return {"request": dataclasses.replace(request, options={**request.options, "build": build})}

    on = BackendChoice(name=request.backend, options=request.options)
    device, elsewhere = backend(on.name).reach(on.options), on.in_release
    needs = framework_needs(source.model.framework) if build_task is None else frozenset({on.name})
    needs = needs if elsewhere is None else elsewhere.needs
    task = Task(
        name,
        "execute" if elsewhere is None else "execute_released",
        complete,
        depends=() if build_task is None else (build_task,),
        needs=needs,
        timeout=state.settings.seconds,
        alone=state.settings.timed or device != CONFINED,
        device=device,
        prepare=lambda: make_environments(needs, state.display),
        environment=backend(on.name).environment(on.options),
    )
    return state.kept(task)


def execution_of(state: RunState, subject: Subject, source: LoadedModel, config: BackendChoice) -> RunRequest:
    """What the job is told that runs a model on a backend.

    Args:
        state: Of the audit.
        subject: The configured model.
        source: To run.
        config: Where.

    Raises:
        ConfigError: if a folder that its backend reads isn't there.
    """
    data, recipe = state.data_for(subject, source)
    return RunRequest(
        model=source.model.bare,
        backend=config.name,
        options=backend_options(config),
        data=data,
        recipe=recipe,
        batch_size=subject.batch_size,
        steps=state.steps_of(subject),
        rows=state.rows_of(subject),
    )

"""Run every model on every backend."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from conrepair.application.engine.task import Result, Task
from conrepair.application.jobs.values import Compiled, RunRecord, RunRequest
from conrepair.application.pipeline.evaluation import Execution, references, run_of
from conrepair.application.pipeline.plan import Conversion, backend_options
from conrepair.application.pipeline.settings import AS_IT_IS, BackendChoice
from conrepair.application.pipeline.stages.compilation import backends_of, compile_task, refusal
from conrepair.application.pipeline.stages.recorded_integers import read_integers
from conrepair.application.pipeline.stages.state import RunState, problem_of
from conrepair.application.pipeline.subject import Subject
from conrepair.application.report.result import NOT_TAKEN, Build, Problem
from conrepair.formats.backends.all_backends import backend, compiles
from conrepair.formats.models.formats import RECORDED, framework_needs
from conrepair.formats.models.model import LoadedModel
from conrepair.ground.runtime.errors import ConrepairError, ExitCode
from conrepair.ground.runtime.files.store import Entry
from conrepair.ground.runtime.processes.reach import CONFINED
from conrepair.ground.runtime.processes.workers import NO_LIBRARY

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


Planned = tuple[Subject, Execution]
"""What is to run, behind the model that it's fed as."""


def execute(state: RunState, subjects: Sequence[Subject]) -> list[Execution]:
    """Compile, and run models on every backend, with what's made of them."""
    return run_executions(state, planned(state, subjects))


def planned(state: RunState, subjects: Sequence[Subject]) -> list[Planned]:
    """What is to run on which backend, of models and what's made of them."""
    return [(subject, item) for subject in subjects for item in _plan_executions(state, subject)]


def run_executions(state: RunState, wanted: Sequence[Planned]) -> list[Execution]:
    """Run what is to run and wasn't, and fill in what came of it."""
    asked = [(item, _tasks(state, subject, item)) for subject, item in wanted]
    done = state.scheduler.results
    undone = [task for _, tasks in asked for task in tasks.values() if task.name not in done]
    builds, runs = ([task for task in undone if (task.kind == "compile") is first] for first in (True, False))
    off = not state.settings.stages.execute
    state.run("compiling", builds, "stage execute is off, and no earlier run compiled this" if off else "")
    state.run("running models", runs, "stage execute is off, and no earlier run did it" if off else "")
    unreadable = state.photos.wait()
    executed, refused = [item for item, _ in asked], dict[int, Mapping[int, str]]()
    for place, (item, tasks) in enumerate(asked):
        record = _fill_in(state, item, {what: done[task.name] for what, task in tasks.items()})
        dataset = state.datasets.get(item.model)
        if record is not None:
            refused[place] = record.refused
        elif dataset is not None and dataset.sha256 in unreadable and tasks and not off and item.problem is None:
            item.problem = Problem.of(unreadable[dataset.sha256])
    for place, numbers in refused.items():
        executed[place].refused = _refused(state, executed[place], numbers, executed)
    read_integers(state, executed)
    tell_files(state, executed)
    return executed


def _fill_in(state: RunState, item: Execution, ended: Mapping[str, Result]) -> RunRecord | None:
    """Give an execution what came of its tasks; returns what's recorded of its run."""
    build, second, result = map(ended.get, ("build", "second", "run"))
    if build is not None and build.entry is None:
        item.problem = problem_of(build)
    elif build is not None and build.entry is not None:
        made = build.entry.read(Compiled)
        item.build, item.build_sha256 = Build(build.entry.folder, item.via, made.build), made.sha256
    if second is not None and second.entry is not None:
        name = f"{item.row_name}, second opinion"
        item.second = run_of(item, second.entry.folder, second.entry.read(RunRecord).run, name, second=True)
    if result is None or (result.entry is None and not state.settings.stages.execute):
        return None  # a row without a run, not a failure
    item.failure, item.reused = result.failure, result.reused
    if result.entry is None:
        return None
    record = result.entry.read(RunRecord)
    item.run = run_of(item, result.entry.folder, record.run, item.name)
    _tell_matching(state, item, record)
    return record


def _refused(state: RunState, item: Execution, refused: Mapping[int, str], executed: Sequence[Execution]) -> str:
    """The numbers of samples that a target fails with, and its reference doesn't, in words."""
    one = next(references(executed, item.reference), None)
    if item.kind != "target" or not refused or one is None or one.source is None or one.run is None:
        return ""
    most = max(refused)
    request = execution_of(state, state.subject(one.model), one.source, one.on)
    request = dataclasses.replace(request, batch_size=most, limit=most, other_batches=True)
    task = _execution_task(state, f"{one.name}, other batches", one.source, request)
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
    task = state.task(
        f"{item.name}, shapes", "baked", {"model": item.source.model.bare, "request": request}, item.source
    )
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
                lines.append(f"its metadata {key} is {two}, that of the original {one}")
        state.notes += [note for line in lines if (note := f"{item.row_name}: {line}") not in state.notes]


def _tell_matching(state: RunState, item: Execution, ran: RunRecord) -> None:
    """Note how data were fitted that somebody made for a specification; of a target, where it's a guess.

    A target's inputs may have other names and another layout than its source's: that's what conversions do.
    """
    seconds = state.settings.compiled_seconds
    lines = [*ran.matching.guesses, *(ran.matching.others if item.kind == "reference" else ())]
    if seconds is not None and ran.run.count < ran.samples:
        lines.append(
            f"ran on {ran.run.count} of {ran.samples} samples on {item.backend}, as each takes "
            f"{ran.run_seconds / ran.run.count:.1f} s and `limits.compiled_seconds` is {seconds:g}"
        )
    for line in lines:
        if (note := f"{item.row_name.removesuffix('/source')}: {line}") not in state.notes:
            state.notes.append(note)


def _plan_executions(state: RunState, subject: Subject) -> list[Execution]:
    reference = subject.reference
    kind = "target" if subject.compare_with else "reference"
    result = []
    for config in backends_of(subject, subject.source):
        item = Execution(subject.name, reference, "", config, kind, subject.source, subject.problem)
        item.made, item.converted = subject.name, subject.converted
        result.append(item)
    for config in subject.backends:
        source = subject.source
        if source is not None and config.converts and (why := refusal(config, source.model)):
            code = ExitCode.EQUIVALENT if config.optional else ExitCode.MODEL_LOAD
            problem = Problem(message=why, kind=NOT_TAKEN, exit_code=code)
            result.append(Execution(subject.name, reference, "", config, kind, source, problem))
    for wanted, error in state.impossible[subject.name].items():
        first = subject.backends[0]
        result.append(Execution(subject.name, reference, wanted, first, "target", None, Problem.of(error)))
    for conversion in state.conversions[subject.name]:
        result += plan_conversion(state, subject, conversion)
    return result


def plan_conversion(state: RunState, subject: Subject, conversion: Conversion) -> list[Execution]:
    """The executions of what a conversion made, on every backend."""
    made, problem = state.outcome(conversion.name)
    kind = "target" if conversion.final else "intermediate"
    result = []
    for config in backends_of(subject, made):
        item = Execution(subject.name, subject.reference, conversion.route, config, kind, made, problem)
        item.made, item.asked = conversion.name, conversion.asked
        item.origin = subject.source.description.precision if subject.source is not None else None
        result.append(item)
    return result


def _tasks(state: RunState, subject: Subject, item: Execution) -> dict[str, Task]:
    """What runs a model on a backend, beside what builds it and gives a second opinion.

    Args:
        state: Of the audit.
        subject: What it's fed as.
        item: What is to be run; what speaks against it is its problem.
    """
    source, config, tasks = item.source, item.on, dict[str, Task]()
    if source is None or item.problem is not None or item.run is not None:
        return {}
    if config.optional and (lacks := backend(config.name).lacks()):
        item.problem = Problem(message=f"{config.name} isn't installed here: {lacks}", kind=NO_LIBRARY)
        return {}
    name = item.name if state.limit is None else f"{item.name}, first inputs"
    first = item.kind == "reference" and config == backends_of(subject, source)[0]
    prepared = state.prepared.get((item.made, config.label))
    if isinstance(prepared, Problem):
        item.problem = prepared
        return {}
    if prepared:
        item.via = prepared[-1].route
        source, item.problem = state.outcome(prepared[-1].name)
    if source is None:
        return {}
    if source.model.framework == RECORDED:
        return {"run": _recorded_task(state, subject, name, source)}
    try:
        request = execution_of(state, subject, source, config)
        request = dataclasses.replace(request, other_batches=item.kind == "target" and state.limit is None)
        if compiles(config.name) and config.in_release is None:
            build = compile_task(
                f"{name}, build",
                source.model,
                config,
                request.options,
                batch_size=subject.batch_size,
                seconds=state.settings.seconds,
            )
            tasks["build"] = state.kept(build)
            item.compiled = True
            if state.settings.compiled_seconds is not None:
                request = dataclasses.replace(request, spend=state.settings.compiled_seconds)
    except ConrepairError as error:
        item.problem = Problem.of(error)
        return {}
    tasks["run"] = _execution_task(state, name, source, request, tasks.get("build"))
    if first:
        second = dataclasses.replace(
            request,
            backend="libraries",
            options={"second_opinion": True},
            limit=state.limit or _SECOND_OPINION_SAMPLES,
        )
        tasks["second"] = _execution_task(state, f"{name}, second opinion", source, second)
    return tasks


def _recorded_task(state: RunState, subject: Subject, name: str, source: LoadedModel) -> Task:
    """Take the outputs that were computed elsewhere in place of running a model."""
    if subject.dataset is None:
        raise ValueError("the inputs that these outputs were computed for aren't given")
    beside = [other for other in state.subjects if other.reference == subject.reference and other is not subject]
    known = [other.source.description.outputs for other in beside if other.source is not None]
    payload = {
        "model": source.model,
        "outputs": tuple(spec.name for spec in known[0]) if known else (),
        "samples": subject.dataset.count // state.steps_of(subject),
    }
    return state.task(name, "recorded", payload)


def _execution_task(
    state: RunState, name: str, source: LoadedModel, request: RunRequest, build: Task | None = None
) -> Task:
    def complete(entries: Mapping[str, Entry]) -> dict[str, Any]:
        options = request.options
        if build is not None:
            entry = entries[build.name]
            made = {"path": str(entry.folder), "sha256": entry.read(Compiled).sha256}
            options = {**options, "build": made}
        return {"model": source.model.bare, "request": dataclasses.replace(request, options=options)}

    on = BackendChoice(name=request.backend, options=request.options)
    device, elsewhere = backend(on.name).reach(on.options), on.in_release
    needs = framework_needs(source.model.framework) if build is None else frozenset({on.name})
    needs = needs if elsewhere is None else elsewhere.needs
    task = Task(
        name,
        "execute" if elsewhere is None else "execute_released",
        complete,
        depends=() if build is None else (build.name,),
        needs=needs,
        timeout=state.settings.seconds,
        alone=state.settings.timed or device != CONFINED,
        device=device,
        environment=backend(on.name).environment(on.options),
    )
    return state.kept(task)


def execution_of(state: RunState, subject: Subject, source: LoadedModel, config: BackendChoice) -> RunRequest:
    """What the job is told that runs a model on a backend, besides the model.

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
        backend=config.name,
        options=backend_options(config),
        data=data,
        recipe=recipe,
        batch_size=subject.batch_size,
        limit=state.limit,
        steps=state.steps_of(subject),
        rows=state.rows_of(subject),
    )

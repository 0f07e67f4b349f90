"""Repair targets, and say how to convert without their faults."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from conrepair.application.engine.task import Result, Task
from conrepair.application.pipeline.evaluation import Execution, judged_again, references, run_of
from conrepair.application.pipeline.plan import chains
from conrepair.application.pipeline.settings import LIBRARIES
from conrepair.application.pipeline.stages.compilation import prepare
from conrepair.application.pipeline.stages.conversion_repair import RouteTrial, try_route
from conrepair.application.pipeline.stages.execution import Planned, run_executions
from conrepair.application.pipeline.stages.localize import localization_task, localized, model_of
from conrepair.application.pipeline.stages.localizing import first_samples
from conrepair.application.pipeline.stages.preparation import source_task
from conrepair.application.pipeline.stages.state import RunState, problem_of
from conrepair.application.pipeline.subject import Subject
from conrepair.application.report.repair.summary import advice_line
from conrepair.application.report.result import RepairedTarget, Row
from conrepair.application.report.row_paths import placed, resolved_in
from conrepair.diagnosis.localization.result import Localization, LocatedFault
from conrepair.diagnosis.repairs.conversion.remedies import Remedy, RouteStep, suggestions, suggestions_for_files
from conrepair.diagnosis.repairs.options import Ran
from conrepair.diagnosis.repairs.outcomes import SAME_GRAPH, Advice
from conrepair.diagnosis.repairs.result import RepairResult
from conrepair.ground.data.feeds import sample_order
from conrepair.ground.data.pictures.recipe import Recipe
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.runtime.files.store import Entry
from conrepair.ground.runtime.shown.heartbeat import told_in
from conrepair.ground.runtime.typed import typed

_MOST = 8  # ways that are named
_UP = "the time was up"
_FOUND = "another way avoids the fault already"


def _advise(
    ways: Iterable[Remedy],
    found: Localization,
    attempt: Callable[[Sequence[RouteStep]], tuple[RouteTrial, Localization | None]],
    seconds: float,
) -> tuple[Advice, ...]:
    """Convert a source anew until no layer is at fault.

    Args:
        ways: The likeliest to help first.
        found: The target's faults.
        attempt: Takes the source along a route, and looks at what that gave; None where that can't be.
        seconds: After which nothing more is tried.
    """
    end, result = time.monotonic() + seconds, []
    reason, seen = "" if seconds else "no time was given for it", set()
    for way in ways:
        if way.route in seen:
            continue
        seen.add(way.route)
        if not reason and time.monotonic() > end:
            reason = _UP
        if reason:
            result.append(Advice(way.words, way.route, tried=False, avoids=False, outcome=f"not tried: {reason}"))
        else:
            result.append(_tried(way, found, *attempt(way.steps)))
            reason = _FOUND if result[-1].avoids else ""
        if len(result) == _MOST:
            break
    return tuple(result)


def _tried(way: Remedy, found: Localization, trial: RouteTrial, again: Localization | None) -> Advice:
    outcome, avoids = "", False
    made = trial.models[-1] if trial.models else None
    if trial.failure is not None:
        outcome = f"it fails: {trial.failure}"
    elif again is None:
        outcome = "its layers can't be compared"
    elif not again.faults:
        outcome, avoids = f"no layer is faulty ({again.verdict.value})", again.is_right
    elif {_place(fault) for fault in again.faults} >= {_place(fault) for fault in found.faults}:
        outcome = "the same fault"
    else:
        outcome = f"other faults: {len(again.faults)} instead of {len(found.faults)}"
    return Advice(
        way.words, way.route, tried=True, avoids=avoids, outcome=f"tried: {outcome}", model=made if avoids else None
    )


def _place(fault: LocatedFault) -> tuple[str, str]:
    return fault.kind.value, fault.source_tensor


# Which rows of an audit are repaired, and what becomes of the results.


def rows_to_repair(rows: Sequence[Row]) -> list[int]:
    """Places of the rows whose targets have layers at fault.

    A build isn't repaired for what its model has wrong, nor a file for what a backend does with it.
    """
    found = (
        (place, row.localized.own)
        for place, row in enumerate(rows)
        if row.localized.result is not None and not row.localized.steps[-1].compared.backend
    )
    return [place for place, own in found if own is not None and own.faults and rows[place].localized.problem is None]


def _with_repair(row: Row, result: Result) -> Row:
    """A row of a target with what became of its repair."""
    if result.entry is None:
        return dataclasses.replace(row, repaired=RepairedTarget(problem=problem_of(result)))
    repair = placed(result.entry.read(RepairResult), resolved_in(result.entry.folder))
    return dataclasses.replace(row, repaired=RepairedTarget(result=repair))


def _with_advice(row: Row, advice: tuple[Advice, ...]) -> Row:
    """A row with other ways to convert; where nothing could be repaired, that is said with the reason.

    Args:
        row: Of a target with layers at fault.
        advice: In the order in which they were tried.
    """
    line, problem = advice_line(advice), row.repaired.problem
    if problem is not None and line:
        words = "\n".join(filter(None, (problem.explanation, f"advice: {line}")))
        problem = dataclasses.replace(problem, explanation=words)
    return dataclasses.replace(row, repaired=dataclasses.replace(row.repaired, advice=advice, problem=problem))


# Run repaired targets where the targets ran, on what they ran on: how each input is answered before and after.


def _with_answers(state: RunState, executed: Sequence[Execution], rows: Sequence[Row]) -> list[Row]:
    """Rows with the verdict on what was made of their targets, and its answers to the inputs that they have.

    A repair is verified on samples that took no part in it, and so never runs on most of these. A target that ran on
    several backends is repaired once, and the repaired one runs on all of them.

    Args:
        state: The run.
        executed: What ran.
        rows: Their rows, with what became of their repairs.
    """
    items: dict[int, Planned] = {}
    for place, row in enumerate(rows):
        done = row.repaired.result
        if done is not None and done.edits and not done.interrupted:
            for other in [place] if executed[place].build is not None else _beside(executed, rows, place):
                items[other] = _planned(state, executed, executed[other], done)
    result = list(rows)
    if items:
        run_executions(state, list(items.values()))
    for place, (_, item) in items.items():
        row = rows[place]
        reference = next(references(executed, item.reference))
        repaired = judged_again(state.settings, reference, item, row, state.datasets.get(item.model))
        result[place] = dataclasses.replace(row, repaired=repaired)
        if repaired.verdict is None:
            why = item.problem.message if item.problem is not None else item.failure or "it has no such output"
            state.notes.append(f"{row.label} on {row.backend}: the repaired model wasn't compared there: {why}")
    return result


def _beside(executed: Sequence[Execution], rows: Sequence[Row], place: int) -> Iterator[int]:
    """The rows of a target on all backends, but for those with a repair of their own."""
    for other, (item, row) in enumerate(zip(executed, rows, strict=True)):
        same = item.row_name == executed[place].row_name and row.verdict is not None
        if other == place or (same and row.repaired.result is None):
            yield other


def _planned(state: RunState, executed: Sequence[Execution], item: Execution, done: RepairResult) -> Planned:
    """The execution of a repaired target, which is fed by the repair's recipe where there's one.

    What is its source to the bit isn't run again: it gives what that gave in the same place.
    """
    subject, source, on = state.subject(item.model), item.loaded, item.on
    if done.recipe is not None:
        fields = {name: value for name, value in done.recipe.items() if name != "base"}
        subject = dataclasses.replace(subject, recipe=typed(Recipe, {"name": "repaired", **fields}))
    if done.model is not None and done.model.framework == "tvm":
        on = dataclasses.replace(on, options={**on.options, "built": done.model.path})
    elif done.model is not None:
        source = dataclasses.replace(source, model=done.model)
    name = "+".join(filter(None, (item.conversion, "repaired")))
    repaired = Execution(item.model, item.reference, name, on, "target", source, asked=item.asked, origin=item.origin)
    repaired.made, repaired.converted = item.made, item.converted
    if item.via and source.model is done.model:
        repaired.made = _prepared(state, dataclasses.replace(subject, backends=(on,)), repaired)
    for one in references(executed, item.reference) if SAME_GRAPH in done.effects else ():
        if one.on == on and one.run and one.run.repeats:
            repaired.run = run_of(repaired, one.run.folder, one.run, repaired.name)
    return subject, repaired


def _prepared(state: RunState, subject: Subject, repaired: Execution) -> str:
    """Convert a repaired file for a backend that takes another format, as the file was that it's made of.

    Args:
        state: The run.
        subject: Whose file it is, on that backend alone.
        repaired: Receives why it can't be read, if so.

    Returns:
        Name of the task that read it, under which what was converted is known.
    """
    model = repaired.loaded.model
    file = dataclasses.replace(subject, name=repaired.row_name, origin=Path(model.path), sha256=model.sha256)
    if file.name not in state.scheduler.results:
        state.run("reading models", [source_task(file, state.settings.seconds)])
    source, repaired.problem = state.outcome(file.name, loading=True)
    if source is not None:
        prepare(state, [(subject, file.name, source)])
    return file.name


def repair(state: RunState, executed: Sequence[Execution], rows: Sequence[Row]) -> tuple[Row, ...]:
    """Repair targets with layers at fault."""
    places = rows_to_repair(rows)
    tasks = {place: _repair_task(state, executed, executed[place], rows[place]) for place in places}
    state.run("trying repairs", tasks.values())
    result = list(rows)
    for place, task in tasks.items():
        result[place] = _with_repair(rows[place], state.scheduler.results[task.name])
    result = _with_answers(state, executed, result)
    with state.display.stage("trying other ways to convert", len(places)) as stage:
        for place in places:
            known = result[place].repaired.result
            if known is not None and known.interrupted:
                continue
            result[place] = _with_advice(result[place], _advice(state, executed[place], rows[place], executed))
            stage.advance(executed[place].row_name)
    return tuple(result)


def _advice(state: RunState, item: Execution, row: Row, executed: Sequence[Execution]) -> tuple[Advice, ...]:
    """Other ways to make a target with layers at fault."""
    subject, reference = state.subject(item.model), state.subject(item.reference)
    if item.source is None or reference.source is None or row.localized.result is None or item.build is not None:
        return ()
    if all(fault.kind is Kind.PREPROCESSING and fault.at_input for fault in row.localized.result.faults):
        return ()  # no conversion brought that in
    planned = chains(state.conversions[subject.name])
    chain = next((chain for chain in planned if chain[-1].name == item.row_name), None)
    if chain is not None:
        steps = [RouteStep(link.step, link.changed) for link in chain]
        guilty = {fault.step.partition(",")[0] for fault in row.localized.result.faults}
        ways, whose = suggestions(steps, guilty, reference.source.model), subject
    else:
        source, description = reference.source.model, item.source.description
        ways, whose = suggestions_for_files(source, item.source.model.framework, description), reference

    def attempt(steps: Sequence[RouteStep]) -> tuple[RouteTrial, Localization | None]:
        trial = try_route(state, whose, executed, steps)
        if trial.failure is not None or not trial.rows:
            return trial, None
        made = model_of(trial.executed[-1])  # the last row may be that of a build
        return trial, localized(state, [made])[made.looked_at].result

    return _advise(ways, row.localized.result, attempt, state.settings.advice_seconds)


def _repair_task(state: RunState, executed: Sequence[Execution], item: Execution, row: Row) -> Task:
    """As for a localization, with what a repair needs besides."""
    wanted = state.settings.repair
    count = state.settings.layers.samples + wanted.unseen
    found = row.localized.result
    first = () if found is None else found.first
    if not first and item.build is None:
        first = first_samples(state, state.subject(item.model))
    latent = found is not None and found.options.latent_counts
    task = localization_task(state, item, photos=count, first=first, latent=latent)
    dataset = state.subject(item.model).dataset
    labels = () if dataset is None else dataset.labels
    labels = tuple(labels[place] for place in sample_order(first, len(labels))[:count]) if labels else ()
    source = next(references(executed, item.reference), item)
    ran = _ran(state, source), _ran(state, item)

    def payload(entries: Mapping[str, Entry]) -> dict[str, Any]:
        asked = dict(task.payload(entries))
        known = labels if any(label is not None for label in labels) else ()
        return asked | {"options": dataclasses.replace(wanted, localization=asked["options"], labels=known, ran=ran)}

    return dataclasses.replace(
        task,
        name=f"{item.looked_at}, repair",
        kind="repair",
        payload=payload,
        timeout=state.settings.seconds + wanted.seconds,
        progress=told_in,
        continues=True,
        parts=_parts,
    )


def _ran(state: RunState, item: Execution) -> Ran | None:
    """What a model as it is gave, where it ran in its own library, on samples that each have a row of their own."""
    run = item.run
    if run is None or item.on != LIBRARIES or item.build is not None or run.steps > 1 or len(run.starts) == run.count:
        return None
    batch_size = state.subject(item.model).batch_size
    ran = Ran(str(run.folder), item.loaded.model.sha256, batch_size, run.outputs, run.ordered)
    return ran if run.repeats else None


def _parts(value: Any) -> Mapping[str, float]:
    """How long localizing what is left took, where the target was changed."""
    result = typed(RepairResult, value)
    return {"localize what is left": sum(result.after.seconds.values())} if result.edits else {}

"""Name the layers at fault of targets."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from conrepair.application.engine.task import Task
from conrepair.application.pipeline.evaluation import Execution, computes_in
from conrepair.application.pipeline.plan import backend_options
from conrepair.application.pipeline.settings import LIBRARIES
from conrepair.application.pipeline.stages.localizing import (
    fed_model,
    first_samples,
    is_proven,
    options_of,
    outcome,
    random_references,
    rows_to_localize,
    steps_before,
    with_localization,
)
from conrepair.application.pipeline.stages.state import RunState
from conrepair.application.report.result import Compared, LocalizedTarget, Problem, Row
from conrepair.diagnosis.localization.result import Localization
from conrepair.diagnosis.localization.run.fed_model import RunBy
from conrepair.formats.backends.all_backends import backend
from conrepair.formats.models.formats import RECORDED
from conrepair.formats.models.model import LoadedModel
from conrepair.formats.tvm.build import unobservable
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import ExitCode
from conrepair.ground.runtime.files.whole import HashedPath
from conrepair.ground.runtime.processes.reach import CONFINED
from conrepair.ground.runtime.typed import typed
from conrepair.verdicts.evaluate.verdict import Verdict
from conrepair.verdicts.judging.arithmetic import FLOAT32

_WORST = 5  # samples
_MOST_READ = 2**26  # weights


def localize(state: RunState, executed: Sequence[Execution], rows: Sequence[Row]) -> tuple[Row, ...]:
    """Name the layers at fault of targets, and the steps of their conversions."""
    _tell_watched(state, executed, rows)
    drawn = {subject.name for subject in state.subjects if subject.drawn}
    wanted = rows_to_localize(executed, rows, when=state.settings.when, drawn=drawn)
    references = random_references(rows)
    closed = {place: problem for place in wanted if (problem := _unobservable(executed[place])) is not None}
    wanted = [place for place in wanted if place not in closed]
    looked_into = {executed[place].looked_at: executed[place] for place in wanted}
    for place in wanted:
        if _differs_before_it_was_built(executed, rows, place):
            model = model_of(executed[place])
            looked_into.setdefault(model.looked_at, model)
    asked: dict[str, dict[str, Any]] = {
        executed[place].looked_at: {"latent": True}
        for place in wanted
        if rows[place].verdict is Verdict.FAULTY and _steps(rows[place]) > 1
    }
    random = [place for place in wanted if executed[place].reference in references]
    asked |= {executed[place].looked_at: {"static": True} for place in random}
    found = localized(state, list(looked_into.values()), asked)
    found |= {name: _of_random(found[name], rows[place]) for place in random for name in [executed[place].looked_at]}
    behind = {place: steps_before(executed, executed[place]) for place in wanted}
    doubtful = [
        step
        for place in wanted
        if executed[place].reference not in references
        if (model_found := found.get(executed[place].row_name)) is not None
        if (known := model_found.result) is not None and known.faults
        for step in map(model_of, behind[place])
    ]
    found |= localized(state, [item for item in doubtful if item.looked_at not in found])
    result = list(rows)
    for place, problem in closed.items():
        result[place] = dataclasses.replace(rows[place], localized=LocalizedTarget(problem=problem))
    for place in wanted:
        compared = _compared(state, executed[place])
        result[place] = with_localization(rows[place], executed[place], found, behind[place], compared)
    if state.settings.when == "excused":
        result = _with_proofs(state, executed, result)
    return _with_other_samples(state, executed, result, wanted)


def _tell_watched(state: RunState, executed: Sequence[Execution], rows: Sequence[Row]) -> None:
    """Find what a backend computes otherwise than the model's own library, where the file isn't what is wrong."""
    every = list(zip(executed, rows, strict=True))
    right = {item.row_name for item, row in every if item.on == LIBRARIES and row.verdict and row.verdict.is_right}
    right |= {item.row_name for item in executed if item.kind == "reference"}
    wrong, always = {Verdict.FAULTY, Verdict.UNDECIDED}, state.settings.when == "always"
    for item, row in every:
        own = item.on.name == LIBRARIES.name or item.compiled or item.on.in_release is not None
        if own or item.run is None or item.source is None or item.row_name not in right:
            continue
        observes = backend(item.on.name).observes(item.source.model, item.on.options)
        item.watched = observes and (always or row.verdict in wrong)


def _of_random(told: LocalizedTarget, row: Row) -> LocalizedTarget:
    """What the files of random models say, by the verdict on the distributions of their outputs.

    What layers compute is another draw each time; where outputs agree, no difference of files is a fault.
    """
    known = told.result
    if known is None or row.verdict is None or row.ran.run is None:
        return told
    found = dataclasses.replace(
        known,
        verdict=row.verdict,
        reason=row.reason,
        faults=() if row.verdict.is_right else known.faults,
        samples=min(row.ran.run.count, known.options.samples),
        notes=("layers were compared by their files, as the original gives other outputs each time it's run",),
        options=dataclasses.replace(known.options, static=False),
    )
    return told.with_own(localization=found)


def _with_proofs(state: RunState, executed: Sequence[Execution], rows: Sequence[Row]) -> list[Row]:
    """Prove by the files that what answers alike computes the same, whatever it's fed, where that can be proven."""
    result = list(rows)
    places = [
        place
        for place, (item, row) in enumerate(zip(executed, rows, strict=True))
        if item.kind == "target" and not item.is_a_backends and row.verdict is Verdict.EQUIVALENT
        if all(_is_read_soon(source) for source in (item.source, state.subject(item.reference).source))
    ]
    items = [executed[place] for place in places]
    found = localized(state, items, {item.looked_at: {"static": True} for item in items})
    for place in places:
        told = found[executed[place].looked_at]
        if told.result is not None and told.result.verdict is Verdict.EQUIVALENT:
            result[place] = dataclasses.replace(rows[place], localized=told)
    return result


def _is_read_soon(source: LoadedModel | None) -> bool:
    """Whether a model has layers, and few enough weights to be read once more without being asked for it."""
    if source is None or source.model.framework == RECORDED:
        return False
    return source.description.parameters <= _MOST_READ


def _unobservable(item: Execution) -> Problem | None:
    """Why the kernels of a build can't be compared with its model's layers."""
    why = "" if item.build is None else unobservable(item.build.record)
    return (
        Problem(message=f"the layers of the build can't be compared: {why}", exit_code=ExitCode.MODEL_LOAD)
        if why
        else None
    )


def _with_other_samples(
    state: RunState, executed: Sequence[Execution], rows: Sequence[Row], places: Sequence[int]
) -> tuple[Row, ...]:
    """Look at the samples that differ most, where all samples say more than those that were looked at."""
    result = list(rows)
    others = {place: first for place in places if (first := _worst_samples(state, rows[place], executed[place]))}
    tasks = {place: localization_task(state, executed[place], first=first) for place, first in others.items()}
    state.run("comparing layers on other samples", tasks.values())
    for place, task in tasks.items():
        item = executed[place]
        compared = _compared(state, item)
        found = outcome(state.scheduler.results[task.name], compared)
        if found.result is not None and found.result.faults:
            again = found.with_own(localization=dataclasses.replace(found.result, first=others[place]))
            result[place] = with_localization(rows[place], item, {item.looked_at: again}, [], compared)
    return tuple(result)


def _worst_samples(state: RunState, row: Row, item: Execution) -> tuple[int, ...]:
    """The samples that differ most, where nothing was found on others and they weren't among these."""
    found = row.localized.result
    if found is None or item.is_a_backends or _steps(row) > 1:
        return ()
    if found.verdict is not Verdict.UNDECIDED and not is_proven(found, row):
        return ()
    worst = sorted(row.inputs, key=lambda one: -one.relative_l2)[:_WORST]
    samples = tuple(one.index for one in worst if one.relative_l2 > 0)
    looked = first_samples(state, state.subject(item.model)) or range(state.settings.layers.samples)
    return samples if any(place not in looked for place in samples) else ()


def _steps(row: Row) -> int:
    return 1 if row.ran.run is None else row.ran.run.steps


def localized(
    state: RunState, items: Sequence[Execution], asked: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
) -> dict[str, LocalizedTarget]:
    """What became of looking into each model, or build, by its name.

    Args:
        state: The run.
        items: The models.
        asked: What each task is told besides, by the model's name: as in `localization_task`.
    """
    tasks = {item.looked_at: localization_task(state, item, **asked.get(item.looked_at, {})) for item in items}
    results = state.scheduler.results
    state.run("comparing layers", [task for task in tasks.values() if task.name not in results])
    return {item.looked_at: outcome(results[tasks[item.looked_at].name], _compared(state, item)) for item in items}


def _differs_before_it_was_built(executed: Sequence[Execution], rows: Sequence[Row], place: int) -> bool:
    """Whether a build isn't right, and its model may not be either: a source is, and what ran as its source did."""
    item = executed[place]
    if item.build is None or item.kind == "reference" or rows[place].verdict in {None, Verdict.EQUIVALENT}:
        return False
    plain = [row.verdict for other, row in zip(executed, rows, strict=True) if _is_model_of(other, item)]
    return Verdict.EQUIVALENT not in plain


def model_of(item: Execution) -> Execution:
    """What a build was compiled of, to be looked into itself."""
    return dataclasses.replace(item, build=None, compiled=False)


def _is_model_of(other: Execution, item: Execution) -> bool:
    return other.row_name == item.row_name and other.build is None and not other.compiled


def _compared(state: RunState, item: Execution) -> Compared:
    """The files that a task compares."""
    if item.watched:
        model = _compiled(state, item).model
        return Compared(model, model, backend=item.on.name)
    if item.build is None:
        return Compared(state.subject(item.reference).loaded.model, item.loaded.model)
    return Compared(item.loaded.model, _compiled(state, item).model, str(item.build.folder), item.build_sha256)


def _compiled(state: RunState, item: Execution) -> LoadedModel:
    """What was compiled, or runs on a backend: the model, or what had to be made of it first."""
    prepared = state.prepared.get((item.made, item.backend))
    compiled = state.outcome(prepared[-1].name)[0] if prepared and not isinstance(prepared, Problem) else item.source
    if compiled is None:
        raise ValueError("a backend runs a model")
    return compiled


def localization_task(
    state: RunState,
    item: Execution,
    *,
    photos: int | None = None,
    first: tuple[int, ...] = (),
    latent: bool = False,
    static: bool = False,
) -> Task:
    """Look into a target, beside its reference; a task for the scheduler.

    Args:
        state: The run.
        item: The target.
        photos: How many it may look at as files; default: as many as layers are compared on.
        first: Samples to look at before all others; not of a build.
        latent: Whether faults that no input shows count, whatever the settings say; not of a build.
        static: Whether files alone are compared, whatever the settings say; not of a build.
    """
    count = state.settings.layers.samples if photos is None else photos
    target, reference = state.subject(item.model), state.subject(item.reference)
    more: dict[str, Any] = {}
    others = bool(first)
    if item.watched:
        latent, static, loaded = False, False, (_compiled(state, item),) * 2
        one, place = fed_model(state, target, loaded[0], photos=count), backend(item.on.name)
        two = dataclasses.replace(one, on=RunBy(item.on.name, backend_options(item.on)))
        device = place.reach(item.on.options)
        more = {"alone": device != CONFINED, "device": device, "environment": place.environment(item.on.options)}
    elif item.build is None:
        first = first or first_samples(state, target)
        loaded = reference.loaded, item.loaded
        one = fed_model(state, reference, reference.loaded, photos=count, first=first)
        two = fed_model(state, target, item.loaded, photos=count, first=first)
    else:
        latent, static = False, False
        loaded = item.loaded, _compiled(state, item)
        inputs = tuple(typed(TensorSpec, spec) for spec in item.build.record["inputs"])
        build = HashedPath(str(item.build.folder), item.build_sha256)
        one = fed_model(state, target, item.loaded, photos=count)
        two = fed_model(state, target, loaded[1], inputs=inputs, photos=count, build=build)
        device = backend(item.on.name).reach(item.on.options)
        more = {"needs": {"tvm"}, "alone": device != CONFINED, "device": device}
    options = options_of(state.settings, item.intent, target.limits)
    if not options.tolerance.arithmetic and computes_in(item) != FLOAT32.name:
        known = dataclasses.replace(options.tolerance, arithmetic=computes_in(item))
        options = dataclasses.replace(options, tolerance=known)
    counts, by_files = options.latent_counts or latent, options.static or static
    options = dataclasses.replace(options, latent_counts=counts, static=by_files)
    payload = {"source": one, "target": two, "options": options}
    what = " by the files" if static else " of other samples" if others else " with latent faults" if latent else ""
    more["parts"] = lambda value: typed(Localization, value).seconds
    return state.task(f"{item.looked_at}, localization{what}", "localize", payload, *loaded, **more)

"""Look at models: the stages up to what differs, in their order, the same for two files and for a whole audit."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from conrepair.application.engine.task import Task
from conrepair.application.jobs.values import Rounding, RunRecord
from conrepair.application.pipeline.evaluation import Execution, Looked, computes_in, evaluate, run_of
from conrepair.application.pipeline.settings import DEPLOYED, LIBRARIES
from conrepair.application.pipeline.stages.byte_pictures import prepare_pictures
from conrepair.application.pipeline.stages.compilation import convert, models_of, plan, prepare
from conrepair.application.pipeline.stages.execution import (
    execute,
    execute_sources,
    execution_of,
    planned,
    run_executions,
    tell_files,
)
from conrepair.application.pipeline.stages.localizing import fed_model, options_of, unlocalized
from conrepair.application.pipeline.stages.preparation import build, draw
from conrepair.application.pipeline.stages.state import RunState
from conrepair.application.pipeline.subject import Subject
from conrepair.application.report.result import Row
from conrepair.formats.backends.all_backends import backend
from conrepair.formats.models.formats import RECORDED
from conrepair.ground.runtime.errors import ConfigError
from conrepair.ground.runtime.processes.reach import CONFINED
from conrepair.verdicts.evaluate.compare import Comparison, OutputComparison
from conrepair.verdicts.evaluate.numbering import other_numbering
from conrepair.verdicts.evaluate.verdict import Verdict
from conrepair.verdicts.judging.arithmetic import FLOAT32
from conrepair.verdicts.judging.floor import By
from conrepair.verdicts.judging.numbers import LARGEST_NOISE

_FAR = 100.0  # times what explains most of a difference


def look_at(state: RunState) -> Looked:
    """Run the stages that the settings switch on, but for the repair of targets.

    Args:
        state: The run; its subjects and notes are filled in.
    """
    _check_labels(state)
    build(state)
    _tell_states(state)
    prepare_pictures(state)
    draw(state)
    _tell_first(state)
    plan(state)
    convert(state)
    prepare(state, models_of(state))
    if state.settings.few and (found := _by_first_inputs(state)) is not None:
        return found
    asked = planned(state, state.subjects)
    if state.settings.layers_first and (found := _by_layers(state, [item for _, item in asked])) is not None:
        return found
    executed = run_executions(state, asked)
    rows, pairs = evaluate(state.settings, executed, state.datasets)
    if _measure_rounding(state, executed, rows):
        rows, pairs = evaluate(state.settings, executed, state.datasets)
    _tell_numbering(state, executed)
    settings, stages = state.settings, state.settings.stages
    rows = _name_optimizers(state, executed, unlocalized(executed, rows, repairs=stages.repair))
    if stages.repair and settings.repair_conversions:
        from conrepair.application.pipeline.stages.conversion_repair import repair_conversions

        executed, rows = repair_conversions(state, executed, rows)
    if stages.localize or (stages.repair and settings.repair_targets):
        from conrepair.application.pipeline.stages.localize import localize

        rows = localize(state, executed, rows)
    return _looked(state, executed, rows, pairs)


def _looked(
    state: RunState, executed: Sequence[Execution], rows: Sequence[Row], pairs: tuple[Comparison, ...]
) -> Looked:
    return Looked(
        subjects=tuple(state.subjects),
        executed=tuple(executed),
        rows=tuple(rows),
        pairs=pairs,
        notes=tuple(state.notes),
    )


def _by_layers(state: RunState, executed: Sequence[Execution]) -> Looked | None:
    """What layers alone say, where each target has one at fault by inputs that are drawn, which says it all.

    A source that answers differently each time would have its own layers differ; inputs of the user's own are all
    run, as it's of these that the user wants to know.

    Args:
        state: The run.
        executed: What is to run.

    Returns:
        None where a verdict may depend on how outputs differ, on all inputs.
    """
    from conrepair.application.pipeline.stages.localize import localize

    told = not (state.settings.metrics or state.settings.max_drop) and {item.kind for item in executed} > {
        "reference"
    }
    if not told or not all(subject.drawn and _is_looked_into(state, subject) for subject in state.subjects):
        return None
    sources = [item.source for item in state.subjects if item.compare_with is None and item.source is not None]
    state.settings.check([spec.name for source in sources for spec in source.description.outputs])
    if not all(_is_steady(state, item) for item in executed if item.kind == "reference"):
        return None
    rows, pairs = evaluate(state.settings, executed, state.datasets)
    rows = localize(state, executed, rows)
    if not all(row.kind == "reference" or _is_at_fault(row) for row in rows):
        return None
    tell_files(state, executed)
    found = [row.localized.result for row in rows]
    judged = [
        row if one is None else dataclasses.replace(row, verdict=one.verdict, reason=one.reason)
        for row, one in zip(rows, found, strict=True)
    ]
    return _looked(state, executed, judged, pairs)


def _by_first_inputs(state: RunState) -> Looked | None:
    """What the first inputs say, where each target is off by so far on them that no others can say otherwise.

    They're run as all are, and held against what the source's rounding is by the same means. Inputs of the user's own
    are all run, as are those of models that keep a state.

    Args:
        state: The run.

    Returns:
        None where more inputs are to be run.
    """
    few = state.settings.few
    if state.settings.metrics or not all(_takes_more(state, subject) for subject in state.subjects):
        return None
    executed = execute(dataclasses.replace(state, limit=few), state.subjects)
    rows, pairs = evaluate(state.settings, executed, state.datasets)
    if all(map(_is_far_off, rows)) and _measure_rounding(state, executed, rows):
        rows, pairs = evaluate(state.settings, executed, state.datasets)
    if not all(map(_is_far_off, rows)):
        return None
    count = max(subject.dataset.count for subject in state.subjects if subject.dataset is not None)
    words = (
        f"the first {few} of {count} samples show that it differs, so no others were run: --samples {count} runs all"
    )
    found = _looked(state, executed, rows, pairs)
    return dataclasses.replace(found, notes=(*found.notes, words))


def _takes_more(state: RunState, subject: Subject) -> bool:
    """Whether a model runs in its own library on more inputs than the first, which are drawn."""
    more = subject.drawn and subject.dataset is not None and subject.dataset.count > state.settings.few
    own = all(choice == LIBRARIES for choice in subject.backends)
    return more and own and _is_looked_into(state, subject)


def _is_far_off(row: Row) -> bool:
    """Whether a row is a source's that ran, or what it says stands whatever other inputs say.

    That's so where an output is a hundred times as far off as what explains most would make it, and further than any
    rounding makes it. What few bits are meant to cost, and what's random, are told of many inputs.
    """
    run, compared, intent = row.ran.run, row.comparison, row.ran.intent
    if run is None or run.unsteady or (intent is not None and intent.quantized):
        return False
    if row.kind == "reference":
        return True
    if compared is None or compared.verdict is not Verdict.FAULTY or compared.unpaired or compared.arithmetic:
        return False
    return any(_is_beyond(output) for output in compared.outputs)


def _is_beyond(output: OutputComparison) -> bool:
    by, error = output.explained, output.error.relative_l2
    if by is None or by.by is not By.NOTHING or output.error.mismatched:
        return False
    return error > max(_FAR * by.allowed, LARGEST_NOISE)


def _is_looked_into(state: RunState, subject: Subject) -> bool:
    """Whether a model could be loaded, has layers, and is run one step at a time."""
    source = subject.source
    return source is not None and source.model.framework != RECORDED and state.steps_of(subject) == 1


def _is_steady(state: RunState, item: Execution) -> bool:
    """Whether a model gives the same twice, as far as its first batch tells."""
    if item.source is None:
        return False
    few = state.settings.layers.batch_size
    request = execution_of(state, state.subject(item.model), item.source, item.on)
    request = dataclasses.replace(request, batch_size=few, limit=few)
    payload = {"model": item.source.model.bare, "request": request}
    entry = state.made(state.task(f"{item.row_name}, twice", "execute", payload, item.source))
    return entry is not None and entry.read(RunRecord).run.repeats


def _is_at_fault(row: Row) -> bool:
    """Whether a target's layers, and not its outputs alone, say that it's wrong."""
    found, about = row.localized.result, row.ran.description
    if found is None or about is None or found.verdict is not Verdict.FAULTY:
        return False
    return bool(found.faults) and len(found.layers) > len(about.outputs)


def _check_labels(state: RunState) -> None:
    """Refuse to hold accuracies against one another where nobody says which answers are right.

    Raises:
        ConfigError: if so.
    """
    for name, data in state.datasets.items() if state.settings.max_drop else ():
        if data is not None and not any(label is not None for label in data.labels):
            raise ConfigError(
                f"max_drop: {name} runs on {data.about}, which has no labels, so accuracy can't be measured. Give "
                "photos (--data) in a folder for each class, with a labels.csv (rows FILE,LABEL), or with their "
                "classes in their names (--labels filenames; in a configuration `labels` of the dataset)."
            )


def _tell_numbering(state: RunState, executed: Sequence[Execution]) -> None:
    """Note where labels number classes otherwise than an original does, whose accuracy then says nothing."""
    for item in executed:
        data = state.datasets.get(item.model)
        if item.kind == "reference" and item.run is not None and data is not None:
            found = other_numbering(item.run, data.labels)
            words = "" if found is None else f"{item.model}: {found.words(data.classes)}"
            if words and words not in state.notes:
                state.tell(words)


def _tell_states(state: RunState) -> None:
    """Note which models go on from what the last call left, and what each sample is for that."""
    for subject in state.subjects:
        states = () if subject.source is None else subject.source.description.states
        if states:
            steps = state.steps_of(subject)
            kept = f"{subject.name} keeps a state: {', '.join(states)}"
            state.notes.append(f"{kept}; each sample is {steps} step{'s' * (steps > 1)} from a fresh start")


def _tell_first(state: RunState) -> None:
    """Run what needs no conversion while others are waited for, and say at once what it comes to."""
    if not state.settings.stages.execute or not any(subject.goals for subject in state.subjects):
        return
    rows, _ = evaluate(state.settings, execute_sources(state), state.datasets)
    for row in rows:
        right = "" if row.ran.accuracy is None else "{} of {} labels right".format(*row.ran.accuracy)
        state.display.note("; ".join(filter(None, (str(row), right))))


def _measure_rounding(state: RunState, executed: Sequence[Execution], rows: Sequence[Row]) -> bool:
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
    asked = [(item, row) for item, row in zip(executed, rows, strict=True) if row.comparison and row.comparison.open]
    wanted = {row.reference for _, row in asked}
    said = state.settings.tolerance.arithmetic
    others = {row.reference for item, row in asked if (said or computes_in(item)) != FLOAT32.name}
    first = {item.model: place for place, item in reversed([*enumerate(executed)]) if item.kind == "reference"}
    tasks = {
        place: _rounding_task(state, item, said if item.model in others else FLOAT32.name)
        for place, item in enumerate(executed)
        if item.model in wanted
        and first.get(item.model) == place
        and _is_looked_into(state, state.subject(item.model))
    }
    for place, entry in state.all_made("measuring rounding error", tasks).items():
        if entry is not None:
            item, found = executed[place], entry.read(Rounding)
            item.rounding = {
                name: run_of(item, entry.folder / name, run, f"{item.row_name}, {name}")
                for name, run in found.runs.items()
            }
            item.kernel = found.kernel
    return any(executed[place].rounding for place in tasks)


def _rounding_task(state: RunState, item: Execution, arithmetic: str) -> Task:
    subject = state.subject(item.model)
    options = options_of(state.settings, None, subject.limits)
    tolerance = dataclasses.replace(options.tolerance, arithmetic=arithmetic)
    options = dataclasses.replace(options, tolerance=tolerance)
    payload = {"source": fed_model(state, subject, item.loaded), "options": options}
    return state.task(f"{item.row_name}, rounding", "rounding", payload, item.loaded)


def _name_optimizers(state: RunState, executed: Sequence[Execution], rows: Sequence[Row]) -> tuple[Row, ...]:
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
        place: _optimizers_task(state, item)
        for place, (item, row) in enumerate(zip(executed, rows, strict=True))
        if item.kind == "reference" and item.on.name == DEPLOYED.name and row.verdict is Verdict.FAULTY
        if backend(item.on.name).reach(item.on.options) == CONFINED and item.on.in_release is None
    }
    found = list(rows)
    for place, entry in state.all_made("name optimizations", tasks).items():
        names = () if entry is None else entry.read(tuple[str, ...])
        if names:
            off = " and ".join(f"`{name}`" for name in names)
            words = f"{rows[place].reason}; without the optimization {off} of ONNX Runtime it gives the right outputs"
            found[place] = dataclasses.replace(rows[place], reason=words)
    return tuple(found)


def _optimizers_task(state: RunState, item: Execution) -> Task:
    request = execution_of(state, state.subject(item.model), item.loaded, item.on)
    payload = {"model": item.loaded.model.bare, "request": request}
    return state.task(f"{item.name}, optimizations", "optimizers", payload, item.loaded)

"""Which rows of an audit are localized, with what, and what becomes of the results."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence

from conrepair.application.engine.task import Result
from conrepair.application.pipeline.evaluation import Execution
from conrepair.application.pipeline.settings import Settings
from conrepair.application.pipeline.stages.state import RunState, problem_of
from conrepair.application.pipeline.subject import Subject
from conrepair.application.report.result import Compared, LocalizedStep, LocalizedTarget, Problem, Row
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.result import Localization, attribute_steps
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.formats.models.model import LoadedModel
from conrepair.ground.data.feeds import sample_order
from conrepair.ground.data.spread import spread_places
from conrepair.ground.data.synthetic import SyntheticRange
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import ExitCode
from conrepair.ground.runtime.files.whole import HashedPath, sha256_of
from conrepair.ground.runtime.words import percent
from conrepair.verdicts.evaluate.run import Intent
from conrepair.verdicts.evaluate.verdict import Verdict
from conrepair.verdicts.judging.arithmetic import arithmetic_of

_NOT_PROVEN = {Verdict.NOISE, Verdict.QUANTIZED, Verdict.UNDECIDED}  # something excuses what differs: layers say more


def outcome(result: Result, compared: Compared) -> LocalizedTarget:
    """What became of a task that looked into a model, beside what it's compared with: one step, or a problem."""
    if result.entry is None:
        return LocalizedTarget(problem=problem_of(result))
    return LocalizedTarget(steps=(LocalizedStep(compared, result.entry.read(Localization)),))


def rows_to_localize(
    executed: Sequence[Execution], rows: Sequence[Row], *, when: str = "different", drawn: Collection[str] = ()
) -> list[int]:
    """Places of the rows whose layers are looked at: one for each target, whatever it ran on, and builds.

    Args:
        executed: What was run.
        rows: Its rows.
        when: Of the settings: "always" takes equivalent targets too, "excused" those alone whose difference
            rounding or a budget excuses, that nothing is told of, or that a budget accuses where inputs are drawn.
        drawn: Models whose inputs are: then a budget proves nothing against a target.

    Returns:
        None of those of which it's said already that layers can't be compared.
    """
    found: dict[str, int] = {}
    for place, (item, row) in enumerate(zip(executed, rows, strict=True)):
        wanted = item.is_a_backends or item.kind == "target"
        if not wanted or item.source is None or item.problem is not None or row.localized.problem is not None:
            continue
        if when == "excused":
            is_asked = _needs_layers(row, drawn=item.model in drawn)
        else:
            differs = row.verdict not in {None, Verdict.EQUIVALENT, Verdict.UNDEPLOYABLE}
            is_asked = differs or (when == "always" and row.problem is None)
        if is_asked:
            found.setdefault(item.looked_at, place)
    return list(found.values())


def unlocalized(executed: Sequence[Execution], rows: Sequence[Row], *, repairs: bool = False) -> tuple[Row, ...]:
    """The rows, with the reason in those of targets that aren't looked into as their reference is random.

    Args:
        executed: What was run.
        rows: Its rows.
        repairs: Whether targets are to be repaired.
    """
    random = random_references(rows)
    judged = {verdict for verdict in Verdict if verdict.is_right or (verdict is Verdict.FAULTY and not repairs)}
    told = {model: _of_random(model, difference) for model, difference in random.items()}
    return tuple(
        dataclasses.replace(row, localized=LocalizedTarget(problem=told[item.reference]))
        if item.reference in told
        and row.kind != "reference"
        and row.problem is None
        and (item.build is not None or row.verdict not in judged)
        else row
        for item, row in zip(executed, rows, strict=True)
    )


def random_references(rows: Sequence[Row]) -> dict[str, float]:
    """References that answer differently each time, by how much: the relative difference of two runs.

    Args:
        rows: Of all that was run.
    """
    # The first run of a reference is the specification; a build of it may be random where memory isn't written.
    runs = {row.model: row.ran.run for row in reversed(rows) if row.kind == "reference" and row.ran.run is not None}
    return {model: max(run.unsteady.values()) for model, run in runs.items() if run.unsteady}


def _of_random(model: str, difference: float) -> Problem:
    return Problem(
        message=(
            f"layers can't be compared: the original {model} gives other outputs each time it's run (two runs on the "
            f"same inputs differ by {percent(difference)})"
        ),
        explanation=(
            "Export the original without random operators (dropout in training mode, Random..., sampling) or with a "
            "seed, and compare that."
        ),
        exit_code=ExitCode.DIFFERENT,
    )


def _needs_layers(row: Row, *, drawn: bool) -> bool:
    """Whether its outputs differ and something excuses that, or they tell nothing.

    Or a budget calls it wrong, on drawn inputs: what it was calibrated on may have been others.
    """
    return row.comparison is not None and (row.verdict in _NOT_PROVEN or (drawn and _is_beyond_budget(row)))


def _is_beyond_budget(row: Row) -> bool:
    return row.verdict is Verdict.FAULTY and row.ran.intent is not None and row.ran.intent.quantized


def fed_model(
    state: RunState,
    subject: Subject,
    source: LoadedModel,
    *,
    inputs: tuple[TensorSpec, ...] | None = None,
    photos: int = 0,
    first: tuple[int, ...] = (),
    build: HashedPath | None = None,
) -> FedModel:
    """One of the two models, as the job takes it.

    Args:
        state: The run.
        subject: The model of the run.
        source: Itself, or what was made of it.
        inputs: Its inputs; default: as its file says, with declared sizes filled in.
        photos: How many of its photos a search of recipes may look at.
        first: Samples to look at before all others.
        build: What was compiled of it, to be looked into in its place.
    """
    data, recipe = state.data_for(subject, source)
    files = () if subject.dataset is None else subject.dataset.photos
    chosen = [files[place] for place in sample_order(first, len(files))[:photos]] if files else []
    return FedModel(
        source.model.bare,
        subject.open_sizes_filled(source) if inputs is None else inputs,
        dataclasses.replace(data, first=first),
        recipe,
        tuple(HashedPath(str(path), sha256_of(path)) for path in chosen),
        build,
    )


def first_samples(state: RunState, subject: Subject) -> tuple[int, ...]:
    """The samples that a model's layers are compared on: spread over data, which may have classes one by one.

    Returns:
        None at all where it's the first ones: all there are, drawn ones, or steps of a state.
    """
    dataset, few = subject.dataset, state.settings.layers.samples
    if dataset is None or subject.drawn or dataset.count <= few or state.steps_of(subject) > 1:
        return ()
    return spread_places(dataset.count, few)


def options_of(settings: Settings, intent: Intent | None, limits: SyntheticRange | None) -> Options:
    """What a localization is told.

    Args:
        settings: Samples and margins.
        intent: The target's, if it's known.
        limits: Of inputs that are drawn; None for others.
    """
    return dataclasses.replace(
        settings.layers,
        precision="float32" if intent is None else intent.precision,
        quantized=intent is not None and intent.quantized,
        drawn=limits is not None,
        unsaid=limits is not None and limits.unsaid,
    )


def steps_before(executed: Sequence[Execution], item: Execution) -> list[Execution]:
    """The models on the way to a target, in order."""
    steps = item.conversion.split("+")
    names = {"+".join(steps[:count]) for count in range(1, len(steps))}
    on_the_way = {
        other.conversion: other
        for other in executed
        if other.model == item.model and other.conversion in names and other.source is not None
    }
    return sorted(on_the_way.values(), key=lambda other: other.conversion.count("+"))


def with_localization(
    row: Row, item: Execution, found: Mapping[str, LocalizedTarget], before: Sequence[Execution], compared: Compared
) -> Row:
    """A row with what was found, and the steps that faults came in at.

    A build of a conversion is two steps away from the row's source. The one that has faults explains the row, the
    conversion first.

    Args:
        row: Of a target.
        item: What was run for it.
        found: Of all that was looked into, by its name.
        before: From `steps_before`.
        compared: What it's compared with, and itself.
    """
    own = found[item.looked_at]
    steps: list[LocalizedStep] = []
    if not item.is_a_backends or item.row_name in found:
        steps += _conversion_step(item, found, before)
    if item.is_a_backends:
        steps += own.steps
    if not steps and own.problem is not None and (alone := _of_outputs(row, own.problem)) is not None:
        steps.append(LocalizedStep(compared, alone))
        own = dataclasses.replace(own, problem=None)
    if not steps:
        problem = own.problem if row.ran.run is None else row.problem  # nothing else says what became of it
        return dataclasses.replace(row, localized=LocalizedTarget(problem=own.problem), problem=problem)
    place = _explaining(steps)
    result = _of_all_samples(steps[place].localization, row)
    steps[place] = dataclasses.replace(steps[place], localization=_bounded(result, steps, row))
    told = LocalizedTarget(steps=tuple(steps), explaining=place, problem=own.problem)
    localized = dataclasses.replace(row, localized=told)
    if result.options.static or is_proven(result, row):
        return dataclasses.replace(localized, verdict=result.verdict, reason=result.reason)
    if row.verdict in _NOT_PROVEN and result.verdict is Verdict.FAULTY:
        reason = f"a layer is faulty, though the outputs are within what is allowed: {row.reason}"
        return dataclasses.replace(localized, verdict=Verdict.FAULTY, reason=reason)
    unproven = row.verdict in _NOT_PROVEN or (_is_beyond_budget(row) and result.options.drawn)
    if unproven and result.verdict is Verdict.UNDECIDED:
        reason = f"{result.reason} ({row.reason})"
        return dataclasses.replace(localized, verdict=Verdict.UNDECIDED, reason=reason)
    return localized


def _of_outputs(row: Row, problem: Problem) -> Localization | None:
    """What outputs alone say step by step, where layers can't be looked into for a state; None for other models."""
    run, compared = row.ran.run, row.comparison
    if run is None or run.steps == 1 or compared is None or compared.worst is None:
        return None
    return Localization(
        verdict=compared.verdict,
        reason=compared.reason,
        samples=run.count,
        output_error=compared.worst.error.relative_l2,
        notes=(f"layers weren't compared: {problem.message}",),
    )


def _conversion_step(
    item: Execution, found: Mapping[str, LocalizedTarget], before: Sequence[Execution]
) -> tuple[LocalizedStep, ...]:
    """From the source to the model that a converter made, or that was given."""
    own = found[item.row_name]
    if own.result is None or not item.conversion:
        return own.steps
    steps = item.conversion.split("+")
    intermediates = [
        (steps[other.conversion.count("+")], found[other.row_name].result)
        for other in before
        if other.row_name in found
    ]
    return own.with_own(localization=attribute_steps(own.result, intermediates, steps[-1])).steps


def _explaining(steps: Sequence[LocalizedStep]) -> int:
    """Place of the first with faults, else of the last of those with the worst verdict."""
    for place, step in enumerate(steps):
        if step.localization.faults:
            return place
    return max(range(len(steps)), key=lambda place: (steps[place].localization.verdict.severity, place))


def _of_all_samples(result: Localization, row: Row) -> Localization:
    """What's said of layers; of outputs alone, what all samples say, where that's an arithmetic that explains them.

    A few samples of few numbers, the ones that differ most at that, leave it to chance what one makes of them.
    """
    compared = row.comparison
    if compared is None or not compared.arithmetic or compared.verdict is Verdict.FAULTY:
        return result
    if len(result.layers) > len(compared.outputs):
        return result
    return dataclasses.replace(result, verdict=compared.verdict, reason=compared.reason, faults=())


def is_proven(result: Localization, row: Row) -> bool:
    """Whether layers are in the arithmetic that outputs look like, which alone don't tell it from a fault.

    Args:
        result: Of the layers.
        row: With the outputs, of all samples.
    """
    compared = row.comparison
    if compared is None or compared.verdict is not Verdict.UNDECIDED or not result.is_right:
        return False
    looks = [
        any(of.arithmetic == compared.arithmetic and output.reason.startswith(str(of)) for of in output.fits)
        for output in compared.outputs
        if not output.verdict.is_right
    ]
    kinds = {arithmetic_of(name).kind for name in (compared.arithmetic, result.arithmetic)}
    return bool(looks) and all(looks) and len(kinds) == 1


def _bounded(result: Localization, steps: Sequence[LocalizedStep], row: Row) -> Localization:
    """No better than all samples of the row say: layers are looked at on some of them, and step by step."""
    if not result.is_right or row.verdict is None or row.verdict.is_right or is_proven(result, row):
        return result
    if row.ran.run is not None and row.ran.run.steps > 1:
        if not result.layers:
            return result
        reason = f"no layer is faulty at the first step ({result.reason}), but: {row.reason}"
        return dataclasses.replace(result, verdict=row.verdict, reason=reason)
    if len(steps) > 1:
        words = "; ".join(f"the {step.name}: {step.localization.reason}" for step in steps)
        reason = f"no single step makes the outputs differ ({words})"
    else:
        reason = (
            f"no layer is faulty on {result.samples} of the samples ({result.reason}), but on all: {row.reason}. "
            "Try other inputs (--seed) or your own (--data)"
        )
    return dataclasses.replace(result, verdict=Verdict.UNDECIDED, reason=reason)

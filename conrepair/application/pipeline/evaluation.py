"""Evaluate what was executed: a row for every run, and every run against every other."""

from __future__ import annotations

import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conrepair.application.engine.problems import problem_of_failure
from conrepair.application.pipeline.datasets import Dataset
from conrepair.application.pipeline.settings import BackendChoice, Settings
from conrepair.application.pipeline.subject import Subject
from conrepair.application.report.result import Build, Place, Problem, Ran, RepairedTarget, Row
from conrepair.formats.backends.all_backends import backend
from conrepair.formats.models.formats import RECORDED
from conrepair.formats.models.model import LoadedModel
from conrepair.formats.models.registry import channels_of, framework
from conrepair.ground.data.declared_sizes import sizes_in_words, sizes_wanted
from conrepair.ground.metrics.statistics import corrected_times, time_statistics
from conrepair.ground.runtime.errors import ExitCode
from conrepair.ground.runtime.processes.workers import NO_DEVICE, NO_LIBRARY, Failure
from conrepair.verdicts.evaluate.compare import Comparison, accuracy, compare_runs
from conrepair.verdicts.evaluate.evidence import evidence_of
from conrepair.verdicts.evaluate.inputs import ComparedInput, compared_inputs
from conrepair.verdicts.evaluate.max_drop import judge_drop
from conrepair.verdicts.evaluate.numbering import other_numbering
from conrepair.verdicts.evaluate.run import Intent, Run
from conrepair.verdicts.evaluate.verdict import Verdict


@dataclass
class Execution:
    """One model on one backend, after execution.

    Attributes:
        model: Name of the configured model.
        reference: Name of the configured model that is its specification.
        conversion: Converters joined by +, "" for the model itself.
        on: Where it ran.
        kind: "reference", "target" or "intermediate".
        source: The model, if there is one.
        made: Name of the task that made the model.
        via: Converters joined by + that made of the model what its backend takes; "" where that's the model itself.
        compiled: Whether the backend is a compiler, whose build runs.
        watched: Whether what the backend computes on the way is looked into, and not the file.
        build: What that made.
        build_sha256: Of its folder.
        refused: Numbers of samples that it fails with, and its reference doesn't, in words; "" where there are none.
        problem: Why there's no run.
        failure: Of the run.
        run: What it gave.
        reused: Whether that's of an earlier audit.
        second: What the model gives in another arithmetic, of a reference.
        rounding: What its outputs are by other means, by the names of `Rounding`, where a verdict depends on that.
        kernel: As of `Rounding`.
        converted: Whether the model is a conversion of its reference, whoever made it.
        asked: The precision that options of its converters ask for.
        origin: Precision of the configured model, for a conversion.
    """

    model: str
    reference: str
    conversion: str
    on: BackendChoice
    kind: str
    source: LoadedModel | None
    problem: Problem | None = None
    failure: Failure | None = None
    run: Run | None = None
    reused: bool = False
    second: Run | None = None
    rounding: Mapping[str, Run] = field(default_factory=dict)
    kernel: str = ""
    converted: bool = False
    asked: str | None = None
    origin: str | None = None
    made: str = ""
    via: str = ""
    compiled: bool = False
    watched: bool = False
    build: Build | None = None
    build_sha256: str = ""
    refused: str = ""

    @property
    def loaded(self) -> LoadedModel:
        """The model, of one that is there."""
        if self.source is None:
            raise ValueError(f"{self.row_name} was not made")
        return self.source

    @property
    def backend(self) -> str:
        """How reports call where it ran."""
        return self.on.label

    @property
    def row_name(self) -> str:
        """As `Row.name`."""
        return f"{self.model}/{self.conversion or 'source'}"

    @property
    def name(self) -> str:
        """Of the model and where it ran."""
        return f"{self.row_name}@{self.backend}"

    @property
    def looked_at(self) -> str:
        """Name of what a localization looks into: the model wherever it ran, or as one backend runs it."""
        return self.name if self.is_a_backends else self.row_name

    @property
    def is_a_backends(self) -> bool:
        """Whether a localization looks into what a backend makes of the model: a build, or what it computes."""
        return self.watched or self.build is not None

    @property
    def intent(self) -> Intent | None:
        """Which precision the model was meant to have, if there is one."""
        if self.source is None:
            return None
        description = self.source.description
        found = description.precision if description.parameters else self.asked or description.precision
        return Intent(found, self.asked, self.origin)


@dataclass(frozen=True, kw_only=True)
class Looked:
    """What models were seen to do.

    Attributes:
        subjects: The models, with what was found out about them.
        executed: What ran.
        rows: One for each of these, with the layers at fault where that was asked.
        pairs: Comparisons of each source's runs with one another.
        notes: What a person should know.
        seconds: Spent, by what was done.
    """

    subjects: tuple[Subject, ...]
    executed: tuple[Execution, ...]
    rows: tuple[Row, ...]
    pairs: tuple[Comparison, ...]
    notes: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)


def evaluate(
    settings: Settings, executed: Sequence[Execution], datasets: Mapping[str, Dataset | None]
) -> tuple[tuple[Row, ...], tuple[Comparison, ...]]:
    """Judge every run against its reference.

    Args:
        settings: Tolerances, top_k, and whether to evaluate at all.
        executed: In the order of the rows.
        datasets: By model name, for the labels.

    Returns:
        The rows, and the comparisons of the runs of each source with one another.

    Raises:
        ConfigError: if a tolerance or a metric is for an output that no source has.
    """
    first = {item.model: item for item in reversed(executed) if item.kind == "reference"}
    references = {name: item for name, item in first.items() if item.run}
    if len(references) == len(first):
        settings.check([spec.name for item in first.values() if item.run for spec in item.run.outputs])
    rows = []
    for item in executed:
        dataset = datasets.get(item.model)
        rows.append(_row(settings, item, references.get(item.reference), dataset, first.get(item.reference)))
    pairs: list[Comparison] = []
    if settings.stages.evaluate:
        for name in dict.fromkeys(item.reference for item in executed):
            reference = references.get(name)
            source = None if reference is None else reference.run
            group = [item.run for item in executed if item.reference == name and item is not reference and item.run]
            pairs += [
                _compare(settings, one, two, reference, source=_beside(one, source))
                for one, two in itertools.combinations(group, 2)
                if one.count == two.count
            ]
    return _corrected(rows, pairs)


def judged_again(
    settings: Settings, reference: Execution, item: Execution, row: Row, dataset: Dataset | None
) -> RepairedTarget:
    """What a row's repair comes to on the row's backend.

    Args:
        settings: As for `evaluate`.
        reference: The specification.
        item: The repaired target.
        row: Of the target as it came.
        dataset: That all of them ran on.

    Returns:
        The row's own, with the verdict on the repaired target, and its answers to the inputs that the row has, in the
        output that the row has them in; unchanged where the run isn't there.
    """
    one, two = reference.run, item.run
    if one is None or two is None or one.count != two.count:
        return row.repaired
    comparison = _gated(settings, _compare(settings, one, two, reference), one, two, dataset)
    found = dataclasses.replace(row.repaired, verdict=comparison.verdict, reason=comparison.reason)
    before = None if row.comparison is None else row.comparison.worst
    outputs = () if before is None else comparison.outputs
    output = next((item for item in outputs if before and item.pair.reference == before.pair.reference), None)
    if output is None or dataset is None:
        return found
    only = [item.index for item in row.inputs]
    names = dataset.names[: two.count]
    inputs = compared_inputs(output, one, two, names, dataset.labels, classes=settings.top_k, only=only)
    return dataclasses.replace(found, inputs=inputs)


def with_corrected_times(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Correct the tests of times for their number.

    Those of one model on its backends are a family, and so are those between the same two models.

    Args:
        comparisons: Of runs called MODEL@BACKEND.

    Returns:
        The same, in order.
    """
    families: defaultdict[frozenset[str], list[int]] = defaultdict(list)
    for index, item in enumerate(comparisons):
        families[frozenset(name.partition("@")[0] for name in (item.reference, item.candidate))].append(index)
    result = list(comparisons)
    for members in families.values():
        corrected = corrected_times([comparisons[index].times for index in members])
        for index, times in zip(members, corrected, strict=True):
            result[index] = dataclasses.replace(comparisons[index], times=times)
    return result


def _corrected(rows: Sequence[Row], pairs: Sequence[Comparison]) -> tuple[tuple[Row, ...], tuple[Comparison, ...]]:
    """Rows and pairs with tests of times that know of one another."""
    judged = [row.comparison for row in rows if row.comparison is not None]
    corrected = iter(with_corrected_times([*judged, *pairs]))
    done = [row if row.comparison is None else dataclasses.replace(row, comparison=next(corrected)) for row in rows]
    return tuple(done), tuple(corrected)


def _row(
    settings: Settings,
    item: Execution,
    reference: Execution | None,
    dataset: Dataset | None,
    wanted: Execution | None,
) -> Row:
    """The row of a run.

    Args:
        settings: Whether it's judged, and how.
        item: What was to be run.
        reference: The specification, if that ran.
        dataset: That it ran on.
        wanted: The specification, whether it ran or not.
    """
    run = item.run
    problem = item.problem or _execution_problem(item)
    right = None if reference is None else _beside(run, reference.run)
    other_sizes = ""
    if settings.stages.evaluate and item.problem is None and reference is not None:
        other_sizes = _other_sizes(item, reference, problem, dataset)
    if problem is not None and problem.kind in {NO_DEVICE, NO_LIBRARY} and item.on.optional:
        problem = dataclasses.replace(problem, exit_code=ExitCode.EQUIVALENT)
    verdict, reason, comparison = None, "", None
    inputs: tuple[ComparedInput, ...] = ()
    if other_sizes:
        verdict, reason, problem = Verdict.FAULTY, other_sizes, None
    elif problem is not None:
        reason = problem.message
        own = item.kind == "reference" and not (item.compiled or item.on.optional) and item.on.in_release is None
        if not own and problem.is_the_models:
            verdict = Verdict.UNDEPLOYABLE
    elif run is None:
        off = "stage execute is off" if not settings.stages.execute else "comparing its layers was enough"
        reason = f"not run ({off})"
    elif item is reference:
        reason = "the original"
    elif not settings.stages.evaluate:
        reason = "not evaluated (stage evaluate is off)"
    elif reference is None or right is None:
        problem = _not_judged(item.reference, wanted)
        reason = problem.message
    else:
        comparison = _gated(settings, _compare(settings, right, run, reference), right, run, dataset)
        verdict, reason = comparison.verdict, comparison.reason
        if item.refused and verdict.is_right:
            verdict, reason = Verdict.FAULTY, item.refused
            comparison = dataclasses.replace(comparison, verdict=verdict, reason=reason)
        if item.source is reference.source and verdict in {Verdict.QUANTIZED, Verdict.FAULTY}:
            reason += f"; {item.backend} runs the same file, so its optimizations or kernels make the difference"
            comparison = dataclasses.replace(comparison, reason=reason)
        if dataset is not None and comparison.worst is not None:
            names = dataset.names[: run.count]
            inputs = compared_inputs(comparison.worst, right, run, names, dataset.labels, classes=settings.top_k)
    return Row(
        model=item.model,
        conversion=item.conversion,
        backend=item.backend,
        place=item.on.place or (Place(item.source.model.framework) if item.source is not None else None),
        kind=item.kind,
        verdict=verdict,
        reason=reason,
        problem=problem,
        reference=item.reference,
        ran=Ran(
            artifact=item.source.model if item.source else None,
            description=item.source.description if item.source else None,
            intent=item.intent,
            build=item.build,
            run=run,
            times=time_statistics(run.batch_seconds) if run and run.batch_seconds.size else None,
            accuracy=accuracy(run, dataset.labels[: run.count]) if run and dataset else None,
            reused=item.reused,
        ),
        comparison=comparison,
        inputs=inputs,
    )


def _other_sizes(item: Execution, reference: Execution, problem: Problem | None, dataset: Dataset | None) -> str:
    """In words, that a target can't be fed what its reference is, for the sizes that it declares; "" where it can.

    Photos are prepared in each model's own size: where these fail, it's for something else.
    """
    refused = problem is not None and problem.kind == "refused" and problem.exit_code == ExitCode.USAGE
    photos = dataset is not None and bool(dataset.photos)
    if not refused or photos or item.source is None or reference.source is None or item.kind == "reference":
        return ""
    fed, inputs = reference.source.description.inputs, item.source.description.inputs
    wanted = sizes_wanted(fed, inputs)
    return "" if wanted is None else sizes_in_words(fed, inputs, wanted)


def _compare(
    settings: Settings, one: Run, two: Run, reference: Execution | None, *, source: Run | None = None
) -> Comparison:
    """Compare two runs of as many samples, by what is known of the rounding of their reference."""
    return compare_runs(
        one,
        two,
        settings.tolerance,
        top_k=settings.top_k,
        metrics=settings.metrics,
        source=source,
        second_opinion=None if reference is None else _beside(two, reference.second),
        **_measured(two, reference),
    )


def _gated(settings: Settings, found: Comparison, one: Run, two: Run, dataset: Dataset | None) -> Comparison:
    """A comparison with what the accuracy on labelled data says of it."""
    if not settings.max_drop or dataset is None:
        return found
    if other_numbering(one, dataset.labels) is not None:
        words = "accuracy can't decide, as the classes are probably numbered otherwise (--classes)"
        left = Verdict.UNDECIDED if found.verdict is Verdict.QUANTIZED else found.verdict
        return dataclasses.replace(found, verdict=left, reason=f"{found.reason}; {words}")
    verdict, words = judge_drop(settings.max_drop, one, two, dataset.labels)
    if verdict.severity <= found.verdict.severity:
        return dataclasses.replace(found, reason=f"{found.reason}; {words}")
    return dataclasses.replace(
        found, verdict=verdict, reason=f"{words} (its outputs: {found.verdict}, {found.reason})"
    )


def _beside(run: Run | None, other: Run | None) -> Run | None:
    """Another run, on the samples that one had time for."""
    if run is None or other is None or run.count >= other.count:
        return other
    return other.first(run.count)


def _measured(run: Run, reference: Execution | None) -> dict[str, Any]:
    """What was measured of the reference's rounding, on a run's samples, as `compare_outputs` takes it."""
    if reference is None or not reference.rounding:
        return {}
    return evidence_of({name: _beside(run, other) for name, other in reference.rounding.items()}, reference.kernel)


def _not_judged(name: str, wanted: Execution | None) -> Problem:
    """Why a run can't be judged: what kept its reference from running, and what that would make a command return."""
    why = None if wanted is None else wanted.problem or _execution_problem(wanted)
    message = f"not compared: {name}, its original, didn't run"
    if why is None:
        return Problem(message=message, exit_code=ExitCode.MODEL_LOAD)
    return dataclasses.replace(why, message=f"{message}: {why.message}")


def _execution_problem(item: Execution) -> Problem | None:
    return None if item.failure is None else problem_of_failure(item.failure)


def run_of(item: Execution, folder: Path, run: Run, name: str, *, second: bool = False) -> Run:
    """What an execution's model gave, with what's said of that.

    Args:
        item: Of the model.
        folder: Of the outputs.
        run: Without its model.
        name: Of the run.
        second: Whether it's a second opinion.
    """
    model, description = item.loaded.model, item.loaded.description
    quantizing = [name for name in description.operators if "QUANTIZE" in name.upper()]
    return dataclasses.replace(
        run,
        name=name,
        folder=folder,
        quantized=description.quantized,
        precision=description.precision,
        operators=sum(description.operators.values()),
        arithmetic=sum(count for name, count in description.operators.items() if name not in quantizing),
        rounds=any("DEQUANTIZE" not in name.upper() for name in quantizing),
        exact=second and framework(model.framework).exact_again,
        converted=item.converted or bool(item.conversion or item.via or item.build),
        intent=item.intent,
        channels=channels_of(model.framework, description.producer),
        inputs=tuple(description.inputs),
        states=description.states,
        computes_in=computes_in(item),
    )


def references(executed: Iterable[Execution], model: str) -> Iterator[Execution]:
    """The executions of a source that others are compared with, in their order.

    Args:
        executed: Of all models.
        model: Its name.
    """
    return (item for item in executed if item.kind == "reference" and item.model == model)


def computes_in(item: Execution) -> str:
    """The arithmetic that a model was computed in where it ran; "" where nobody says."""
    if item.on.arithmetic:
        return item.on.arithmetic
    if item.source is not None and item.source.model.framework == RECORDED:
        return ""
    return backend(item.on.name).arithmetic(item.on.options)

"""Get a conversion done that failed: find what stops it, convert in another way, verify."""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from conrepair.application.pipeline.evaluation import Execution, evaluate, references
from conrepair.application.pipeline.plan import Conversion, Goal, chains, plan_conversions
from conrepair.application.pipeline.stages.attempts import Attempts
from conrepair.application.pipeline.stages.compilation import conversion_task, prepare
from conrepair.application.pipeline.stages.execution import plan_conversion, run_executions
from conrepair.application.pipeline.stages.state import RunState, model_of
from conrepair.application.pipeline.subject import Subject
from conrepair.application.report.repair.summary import NOT_COMPARED
from conrepair.application.report.result import Row
from conrepair.diagnosis.repairs.conversion.likeness import same_failure
from conrepair.diagnosis.repairs.conversion.remedies import (
    Remedy,
    RouteStep,
    all_rewritings,
    detours,
    exports,
    rewritings,
)
from conrepair.diagnosis.repairs.conversion.result import Mending, Stop, TriedRemedy
from conrepair.formats.models.model import Model
from conrepair.ground.runtime.processes.workers import STORAGE, Failure
from conrepair.verdicts.evaluate.verdict import Verdict

_ROUNDS = 6  # operators that stop a converter one behind the other
_GOOD = {Verdict.EQUIVALENT, Verdict.NOISE, Verdict.QUANTIZED}
_REWRITING = 0.5  # of the time; the rest is for ways around
_SEARCH = 0.5  # of what is left of that, at most, for one bisection
_NORMALISE = "onnx-normalise"
_SHARE, _LEAST = 0.1, 15.0  # of the time, and seconds, that one try on a piece may take


@dataclass(frozen=True)
class RouteTrial:
    """What became of a route.

    Attributes:
        steps: Its converters.
        executed: Its models that are new, the last one behind all others.
        rows: Theirs.
        models: What each step made, as far as it came; the source first.
        failure: Of the conversion, or of running its result.
        place: Of the step that failed; the last one where it's the result that fails.
        ran: Whether the result was made.
    """

    steps: tuple[RouteStep, ...] = ()
    executed: tuple[Execution, ...] = ()
    rows: tuple[Row, ...] = ()
    models: tuple[Model, ...] = ()
    failure: Failure | None = None
    place: int = 0
    ran: bool = False


@dataclass
class _RouteSearch:
    end: float
    stops: list[Stop] = field(default_factory=list)
    tried: list[TriedRemedy] = field(default_factory=list)
    routes: set[str] = field(default_factory=set)
    in_time: bool = True
    hindered: str = ""

    def more(self) -> bool:
        """Whether there's time, and room on the disk, for something else; if not, that's remembered."""
        self.in_time = time.monotonic() < self.end
        return self.in_time and not self.hindered


class ConversionRepairer:
    """Repairs conversions.

    Args:
        attempts: Tries converters on pieces.
        try_route: Takes a whole route, and judges what comes out.
        seconds: For one conversion.
    """

    def __init__(
        self, attempts: Attempts, try_route: Callable[[Sequence[RouteStep]], RouteTrial], seconds: float
    ) -> None:
        self._attempts, self._try_route, self._seconds = attempts, try_route, seconds

    def repair(self, failed: RouteTrial) -> tuple[Mending, RouteTrial | None]:
        """Try other ways until one is as good as a conversion should be.

        Returns:
            What was tried, and what came of the way that helped.
        """
        started = time.monotonic()
        search = _RouteSearch(started + _REWRITING * self._seconds, routes={_route(failed.steps)})
        trial = self._rewritten(failed, search)
        in_time, search.end = search.in_time, started + self._seconds
        trial = trial or self._around(failed, search)
        seconds, in_time = time.monotonic() - started, in_time and search.in_time
        done = Mending(
            stops=tuple(search.stops),
            tried=tuple(search.tried),
            seconds=seconds,
            in_time=in_time,
            hindered=search.hindered,
        )
        if trial is None:
            return done, None
        verdict = trial.rows[-1].verdict
        names = tuple(step.converter.name for step in trial.steps)
        options = {step.converter.name: dict(step.options) for step in trial.steps if step.options}
        done = dataclasses.replace(
            done, via=names, options=options, verdict=verdict.value if verdict else "", in_time=True
        )
        return done, trial

    def _rewritten(self, failed: RouteTrial, search: _RouteSearch) -> RouteTrial | None:
        """Other options, other operators; what another operator then stops is looked into again."""
        trial: RouteTrial | None = failed
        for _ in range(_ROUNDS):
            if trial is None or not search.more() or trial.failure is None:
                return None
            steps = trial.steps
            begin = _group(steps, trial.place)
            end = time.monotonic() + _SEARCH * (search.end - time.monotonic())
            stop, piece = self._attempts.stop_of(
                trial.models[begin], steps[begin : trial.place + 1], trial.failure, end, run=trial.ran
            )
            search.stops.append(stop)
            following: RouteTrial | None = None
            behind = len(steps) - trial.place - 1
            for remedy in _new(rewritings(steps, trial.place, stop.operators), failed, search):
                if piece is not None:
                    local = remedy.steps[begin : len(remedy.steps) - behind]
                    failure = self._attempts.failure_of(piece, local, run=trial.ran)
                    if failure is not None:
                        outcome = f"the smallest segment fails: {failure}"
                        search.tried.append(TriedRemedy(remedy.words, remedy.route, outcome))
                        continue
                found = self._tried(remedy, search)
                if search.tried[-1].mends:
                    return found
                # What fixes the piece leads on, also where another one stops with the same words.
                if found.failure is not None and (piece or not same_failure(found.failure, trial.failure)):
                    following = following or found
            trial = following
        return None

    def _around(self, failed: RouteTrial, search: _RouteSearch) -> RouteTrial | None:
        """All rewrites at once, other options before the step that fails, other converters, other routes.

        Those that fail are repaired in turn, when none of them gives anything.
        """
        source, steps, place = failed.models[0], failed.steps, failed.place
        ways = itertools.chain(all_rewritings(steps, place), exports(steps, place), detours(steps, place, source))
        failing = []
        for remedy in _new(ways, failed, search):
            trial = self._tried(remedy, search)
            if search.tried[-1].mends:
                return trial
            if trial.failure is not None:
                failing.append(trial)
        return next(filter(None, (self._rewritten(other, search) for other in failing)), None)

    def _tried(self, remedy: Remedy, search: _RouteSearch) -> RouteTrial:
        trial = dataclasses.replace(self._try_route(remedy.steps), steps=remedy.steps)
        row = trial.rows[-1] if trial.rows else None
        if trial.failure is not None and trial.failure.kind == STORAGE:
            search.hindered = str(trial.failure)
        if trial.failure is not None:
            outcome, helps = str(trial.failure), False
        elif row is None:
            outcome, helps = "gives nothing", False
        elif row.verdict is None:
            # Where a comparison isn't wanted there's no problem either.
            outcome, helps = f"{NOT_COMPARED}: {row.reason}", row.problem is None
        else:
            outcome, helps = f"{row.verdict.value}: {row.reason}", row.verdict in _GOOD
        search.tried.append(TriedRemedy(remedy.words, remedy.route, outcome, helps))
        return trial


def _new(remedies: Iterable[Remedy], failed: RouteTrial, search: _RouteSearch) -> Iterable[Remedy]:
    """Those that weren't tried yet and keep the precision that was asked for, while there's time."""
    for remedy in remedies:
        if not search.more():
            return
        if remedy.route not in search.routes and _intent(remedy.steps) == _intent(failed.steps):
            search.routes.add(remedy.route)
            yield remedy


def _group(steps: Sequence[RouteStep], place: int) -> int:
    """Where what can be rewritten begins: at the normalisation in front of a step, or at the step."""
    return place - 1 if place and steps[place - 1].converter.name == _NORMALISE else place


def _intent(steps: Sequence[RouteStep]) -> str | None:
    asked = None
    for step in steps:
        asked = step.converter.intent(step.converter.complete(step.options)) or asked
    return asked


def _route(steps: Sequence[RouteStep]) -> str:
    return "+".join(step.label for step in steps)


def try_route(
    state: RunState, subject: Subject, executed: Sequence[Execution], steps: Sequence[RouteStep]
) -> RouteTrial:
    """Take a model along a route, and judge what comes out, as for a configured conversion."""
    options = {step.converter.name: dict(step.options) for step in steps}
    wanted = Goal(via=tuple(step.converter.name for step in steps), options=options)
    chain, impossible = plan_conversions(subject.name, (wanted,), subject.loaded.model)
    for error in impossible.values():
        return RouteTrial(failure=Failure("refused", type(error).__name__, str(error)))
    inputs = subject.inputs(subject.loaded)
    known = state.scheduler.results
    tasks = [conversion_task(state, subject, item, inputs) for item in chain if item.name not in known]
    state.scheduler.run(tasks)
    trial = _trial_of(state, subject, chain)
    if trial.failure is not None:
        return trial
    outcomes = ((item.name, state.outcome(item.name)[0]) for item in chain)
    prepare(state, [(subject, name, source) for name, source in outcomes if source is not None])
    wanted_items = [(subject, item) for link in chain for item in plan_conversion(state, subject, link)]
    items = run_executions(state, wanted_items)
    right = [*references(executed, subject.reference)]
    rows, _ = evaluate(state.settings, [*right, *items], state.datasets)
    made = rows[len(right) :]
    failure = next((item.failure for item in items if item.failure and item.conversion == chain[-1].route), None)
    circumstance = made[-1].verdict is not Verdict.UNDEPLOYABLE
    return dataclasses.replace(
        trial,
        executed=tuple(items),
        rows=made,
        failure=None if circumstance else failure,
        place=len(chain) - 1,
        ran=True,
    )


def _trial_of(state: RunState, subject: Subject, chain: Sequence[Conversion]) -> RouteTrial:
    """How far a chain of conversions came."""
    models = [] if subject.source is None else [subject.source.model]
    for place, conversion in enumerate(chain):
        result = state.scheduler.results[conversion.name]
        if result.entry is None:
            return RouteTrial(models=tuple(models), failure=result.failure, place=place)
        models.append(model_of(result.entry).model)
    return RouteTrial(models=tuple(models))


def repair_conversions(
    state: RunState, executed: Sequence[Execution], rows: Sequence[Row]
) -> tuple[list[Execution], tuple[Row, ...]]:
    """Find other ways for conversions that gave nothing; what they make is judged like all else."""
    items, result = list(executed), list(rows)
    wanted = [(row, failed) for subject in state.subjects for row, failed in _failed(state, subject, executed, rows)]
    seconds = state.settings.repair.seconds
    # Much less for a piece than for the whole, as hanging is a failure too.
    attempts = Attempts(state.scheduler, min(state.settings.seconds, max(_LEAST, _SHARE * seconds)))
    with state.display.stage("repairing conversions", len(wanted)) as stage:
        for row, failed in wanted:
            route = partial(try_route, state, state.subject(row.model), executed)
            tried, trial = ConversionRepairer(attempts, route, seconds).repair(failed)
            place = result.index(row)
            result[place] = dataclasses.replace(row, mending=tried)
            if trial is not None:
                new = [item for item in trial.executed if item.row_name not in {other.row_name for other in items}]
                more = [made for made in trial.rows if made.name in {item.row_name for item in new}]
                items[place + 1 : place + 1] = new
                result[place + 1 : place + 1] = [
                    dataclasses.replace(made, instead_of=row.conversion if made.kind == "target" else "")
                    for made in more
                ]
            stage.advance(row.name)
    return items, tuple(result)


def _failed(
    state: RunState, subject: Subject, executed: Sequence[Execution], rows: Sequence[Row]
) -> Iterator[tuple[Row, RouteTrial]]:
    """The routes of a model that end without one, each with its first row."""
    for chain in chains(state.conversions[subject.name]):
        row = next((row for row in rows if row.name == chain[-1].name), None)
        if row is None or row.verdict is not Verdict.UNDEPLOYABLE:
            continue
        trial = _trial_of(state, subject, chain)
        if trial.failure is None:  # it was made, and doesn't run
            failure = next((item.failure for item in executed if item.failure and item.row_name == row.name), None)
            trial = dataclasses.replace(trial, failure=failure, place=len(chain) - 1, ran=True)
        if trial.failure is None or trial.failure.kind == STORAGE:  # no other way needs less of a full disk
            continue
        if row.problem is not None and not row.problem.circumstance:
            steps = tuple(RouteStep(item.step, item.changed) for item in chain)
            yield row, dataclasses.replace(trial, steps=steps)

"""Get a conversion done that failed: find what stops it, convert in another way, verify."""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from conrepair.evaluate.verdict import Verdict
from conrepair.frameworks.model import Model
from conrepair.pipeline.evaluation import Execution
from conrepair.pipeline.settings import Settings
from conrepair.pipeline.stages.attempts import Attempts
from conrepair.repairs.conversion.likeness import same_failure
from conrepair.repairs.conversion.remedies import Remedy, RouteStep, all_rewritings, detours, exports, rewritings
from conrepair.repairs.conversion.result import Mending, Stop, TriedRemedy
from conrepair.report.repair.summary import NOT_COMPARED
from conrepair.report.result import Row
from conrepair.runtime.workers import STORAGE, Failure

__all__ = ["ConversionRepairer", "Failed", "RouteTrial", "attempt_seconds"]

_ROUNDS = 6  # operators that stop a converter one behind the other
_GOOD = {Verdict.EQUIVALENT, Verdict.NOISE, Verdict.QUANTIZED}
_REWRITING = 0.5  # of the time; the rest is for ways around
_SEARCH = 0.5  # of what is left of that, at most, for one bisection
_NORMALISE = "onnx-normalise"
_SHARE, _LEAST = 0.1, 15.0  # of the time, and seconds, that one try on a piece may take


def attempt_seconds(settings: Settings) -> float:
    """How long a converter may take on a piece: much less than on the whole, as hanging is a failure too."""
    return min(settings.seconds, max(_LEAST, _SHARE * settings.repair.seconds))


@dataclass(frozen=True)
class RouteTrial:
    """What became of a route.

    Attributes:
        executed: Its models that are new, the last one behind all others.
        rows: Theirs.
        models: What each step made, as far as it came; the source first.
        failure: Of the conversion, or of running its result.
        place: Of the step that failed; the last one where it's the result that fails.
        ran: Whether the result was made.
    """

    executed: tuple[Execution, ...] = ()
    rows: tuple[Row, ...] = ()
    models: tuple[Model, ...] = ()
    failure: Failure | None = None
    place: int = 0
    ran: bool = False


@dataclass(frozen=True)
class Failed:
    """A route that gives nothing.

    Attributes:
        steps: Its converters.
        trial: What became of it.
    """

    steps: tuple[RouteStep, ...]
    trial: RouteTrial


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

    def repair(self, failed: Failed) -> tuple[Mending, RouteTrial | None]:
        """Try other ways until one is as good as a conversion should be.

        Returns:
            What was tried, and what came of the way that helped.
        """
        started = time.monotonic()
        search = _RouteSearch(started + _REWRITING * self._seconds, routes={_route(failed.steps)})
        found = self._rewritten(failed, search)
        in_time, search.end = search.in_time, started + self._seconds
        found = found or self._around(failed, search)
        seconds, in_time = time.monotonic() - started, in_time and search.in_time
        done = Mending(
            stops=tuple(search.stops),
            tried=tuple(search.tried),
            seconds=seconds,
            in_time=in_time,
            hindered=search.hindered,
        )
        if found is None:
            return done, None
        remedy, trial = found
        verdict = trial.rows[-1].verdict
        names = tuple(step.converter.name for step in remedy.steps)
        options = {step.converter.name: dict(step.options) for step in remedy.steps if step.options}
        done = dataclasses.replace(
            done, via=names, options=options, verdict=verdict.value if verdict else "", in_time=True
        )
        return done, trial

    def _rewritten(self, failed: Failed, search: _RouteSearch) -> tuple[Remedy, RouteTrial] | None:
        """Other options, other operators; what another operator then stops is looked into again."""
        state: Failed | None = failed
        for _ in range(_ROUNDS):
            if state is None or not search.more():
                return None
            steps, trial = state.steps, state.trial
            if trial.failure is None:
                return None
            begin = _group(steps, trial.place)
            end = time.monotonic() + _SEARCH * (search.end - time.monotonic())
            stop, piece = self._attempts.stop_of(
                trial.models[begin], steps[begin : trial.place + 1], trial.failure, end, run=trial.ran
            )
            search.stops.append(stop)
            state = None
            behind = len(steps) - trial.place - 1
            for remedy in _new(rewritings(steps, trial.place, stop.operators), failed, search):
                if piece is not None:
                    local = remedy.steps[begin : len(remedy.steps) - behind]
                    failure = self._attempts.failure_of(piece, local, run=trial.ran)
                    if failure is not None:
                        outcome = f"the smallest piece fails: {failure}"
                        search.tried.append(TriedRemedy(remedy.words, remedy.route, outcome))
                        continue
                found = self._tried(remedy, search)
                if search.tried[-1].mends:
                    return remedy, found
                # What fixes the piece leads on, also where another one stops with the same words.
                if found.failure is not None and (piece or not same_failure(found.failure, trial.failure)):
                    state = state or Failed(remedy.steps, found)
        return None

    def _around(self, failed: Failed, search: _RouteSearch) -> tuple[Remedy, RouteTrial] | None:
        """All rewrites at once, other options before the step that fails, other converters, other routes.

        Those that fail are repaired in turn, when none of them gives anything.
        """
        source, place = failed.trial.models[0], failed.trial.place
        steps = failed.steps
        ways = itertools.chain(all_rewritings(steps, place), exports(steps, place), detours(steps, place, source))
        failing = []
        for remedy in _new(ways, failed, search):
            trial = self._tried(remedy, search)
            if search.tried[-1].mends:
                return remedy, trial
            if trial.failure is not None:
                failing.append(Failed(remedy.steps, trial))
        return next(filter(None, (self._rewritten(other, search) for other in failing)), None)

    def _tried(self, remedy: Remedy, search: _RouteSearch) -> RouteTrial:
        trial = self._try_route(remedy.steps)
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


def _new(remedies: Iterable[Remedy], failed: Failed, search: _RouteSearch) -> Iterable[Remedy]:
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

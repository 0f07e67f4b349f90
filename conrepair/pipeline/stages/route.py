"""Take one more route than those that are configured, and judge what comes out."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from conrepair.evaluate.verdict import Verdict
from conrepair.pipeline.evaluation import Execution, evaluate
from conrepair.pipeline.plan import Conversion, Goal, plan_conversions
from conrepair.pipeline.sources import model_of
from conrepair.pipeline.stages.compilation import prepare
from conrepair.pipeline.stages.conversion import conversion_task
from conrepair.pipeline.stages.conversion_repair import RouteTrial
from conrepair.pipeline.stages.execution import Runs, plan_conversion, run_executions
from conrepair.pipeline.stages.state import RunState
from conrepair.pipeline.subject import Subject
from conrepair.repairs.conversion.remedies import RouteStep
from conrepair.runtime.workers import Failure

__all__ = ["trial_of", "try_route"]


def try_route(
    state: RunState, subject: Subject, executed: Sequence[Execution], steps: Sequence[RouteStep]
) -> RouteTrial:
    """Take a model along a route, and judge what comes out, as for a configured conversion."""
    if subject.source is None:
        raise ValueError(f"{subject.name} was not made")
    options = {step.converter.name: dict(step.options) for step in steps}
    wanted = Goal(via=tuple(step.converter.name for step in steps), options=options)
    chain, impossible = plan_conversions(subject.name, (wanted,), subject.source.model)
    for error in impossible.values():
        return RouteTrial(failure=Failure("refused", type(error).__name__, str(error)))
    inputs = subject.inputs(subject.source)
    known = state.scheduler.results
    tasks = [conversion_task(state, subject, item, inputs) for item in chain if item.name not in known]
    state.scheduler.run(tasks)
    trial = trial_of(state, subject, chain)
    if trial.failure is not None:
        return trial
    reference = subject.reference
    outcomes = ((item.name, state.outcome(item.name)[0]) for item in chain)
    prepare(state, [(subject, name, source) for name, source in outcomes if source is not None])
    runs, items = Runs(), []
    for item in chain:
        items += plan_conversion(state, subject, reference, item, runs)
    run_executions(state, items, runs)
    right = [item for item in executed if item.model == reference and item.kind == "reference"]
    rows, _ = evaluate(state.settings, [*right, *items], state.datasets)
    made = rows[len(right) :]
    failures = [
        item.result.failure for item in items if item.result is not None and item.conversion == chain[-1].route
    ]
    failure = next((failure for failure in failures if failure is not None), None)
    circumstance = made[-1].verdict is not Verdict.UNDEPLOYABLE
    return dataclasses.replace(
        trial,
        executed=tuple(items),
        rows=made,
        failure=None if circumstance else failure,
        place=len(chain) - 1,
        ran=True,
    )


def trial_of(state: RunState, subject: Subject, chain: Sequence[Conversion]) -> RouteTrial:
    """How far a chain of conversions came."""
    models = [] if subject.source is None else [subject.source.model]
    for place, conversion in enumerate(chain):
        result = state.scheduler.results[conversion.name]
        if result.entry is None:
            return RouteTrial(models=tuple(models), failure=result.failure, place=place)
        models.append(model_of(result.entry).model)
    return RouteTrial(models=tuple(models))

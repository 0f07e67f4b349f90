"""Repair targets, and say how to convert without their faults."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from conrepair.data.feeds import sample_order
from conrepair.engine.scheduler import Task
from conrepair.graph.kinds import Kind
from conrepair.localization.result import Localization
from conrepair.pipeline.evaluation import Execution
from conrepair.pipeline.plan import chains
from conrepair.pipeline.stages.advising import advise
from conrepair.pipeline.stages.conversion_repair import RouteTrial
from conrepair.pipeline.stages.localize import localization_task, localized, model_of
from conrepair.pipeline.stages.repaired import with_answers
from conrepair.pipeline.stages.repairing import rows_to_repair, with_advice, with_repair
from conrepair.pipeline.stages.route import try_route
from conrepair.pipeline.stages.state import RunState, problem_of
from conrepair.repairs.advice import suggestions, suggestions_for_files
from conrepair.repairs.conversion.remedies import RouteStep
from conrepair.repairs.outcomes import Advice
from conrepair.report.result import Row

__all__ = ["repair"]


def repair(state: RunState, executed: Sequence[Execution], rows: Sequence[Row]) -> tuple[Row, ...]:
    """Repair targets with layers at fault."""
    places = rows_to_repair(rows)
    tasks = {place: _repair_task(state, executed[place], rows[place]) for place in places}
    with state.display.stage("repair", len(tasks)) as stage:
        state.scheduler.run(list(tasks.values()), advance=stage.advance)
    result = list(rows)
    for place, task in tasks.items():
        result[place] = with_repair(rows[place], state.scheduler.results[task.name], problem_of)
    result = with_answers(state, executed, result)
    with state.display.stage("advise", len(places)) as stage:
        for place in places:
            known = result[place].repaired.result
            if known is not None and known.interrupted:
                continue
            result[place] = with_advice(result[place], _advice(state, executed[place], rows[place], executed))
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
    refusal = ""
    if chain is not None:
        steps = [RouteStep(link.step, link.changed) for link in chain]
        guilty = {fault.step.partition(",")[0] for fault in row.localized.result.faults}
        ways, whose = suggestions(steps, guilty, reference.source.model), subject
    else:
        source, description = reference.source.model, item.source.description
        ways, whose = suggestions_for_files(source, item.source.model.framework, description.producer), reference
        refusal = "how the target was quantized isn't known" if description.quantized else ""

    def localize(trial: RouteTrial) -> Localization | None:
        made = model_of(trial.executed[-1])  # the last row may be that of a build
        return localized(state, [made])[made.looked_at].localization

    attempt = partial(try_route, state, whose, executed)
    return advise(ways, row.localized.result, attempt, localize, state.settings.repair.advice_seconds, refusal)


def _repair_task(state: RunState, item: Execution, row: Row) -> Task:
    """As for a localization, with what a repair needs besides."""
    wanted = state.settings.repair
    own: dict[str, Any] = {
        "seconds": wanted.seconds,
        "unseen": wanted.unseen,
        "edits": wanted.edits and list(wanted.edits),
        "bake_recipe": wanted.bake_recipe,
    }
    count = state.settings.layers.samples + state.settings.repair.unseen
    found = row.localized.result
    first = () if found is None else found.first
    latent = found is not None and found.options.latent_counts
    task = localization_task(state, item, photos=count, first=first, latent=latent)
    dataset = state.subject(item.model).dataset
    labels = () if dataset is None else dataset.labels
    labels = tuple(labels[place] for place in sample_order(first, len(labels))[:count]) if labels else ()
    own["labels"] = labels if any(label is not None for label in labels) else ()
    return dataclasses.replace(
        task,
        name=f"{item.looked_at}, repair",
        kind="repair",
        payload=lambda entries: {**task.payload(entries), **own},
        timeout=state.settings.seconds + state.settings.repair.seconds,
        continues=True,
        parts=_parts,
    )


def _parts(value: Mapping[str, Any]) -> Mapping[str, float]:
    """How long localizing what is left took, where the target was changed."""
    result = value["repair"]
    return {"localize what is left": sum(result["after"]["seconds"].values())} if result["edits"] else {}

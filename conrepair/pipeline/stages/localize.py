"""Name the layers at fault of targets."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from conrepair.pipeline.evaluation import Executed
from conrepair.pipeline.localization import (
    Localized,
    localization_side,
    options_of,
    rows_to_localize,
    steps_before,
    with_localization,
)
from conrepair.pipeline.scheduler import Task
from conrepair.pipeline.sources import framework_needs
from conrepair.pipeline.stages.state import State, Subject, problem_of
from conrepair.report.result import Row

__all__ = ["localization_task", "localize", "localized"]


def localize(state: State, executed: Sequence[Executed], rows: Sequence[Row]) -> tuple[Row, ...]:
    """Name the layers at fault of targets, and the steps of their conversions."""
    wanted = rows_to_localize(executed, rows, always=state.config.localize.when == "always")
    found = localized(state, [executed[place] for place in wanted])
    behind = {place: steps_before(executed, executed[place]) for place in wanted}
    doubtful = [
        step
        for place in wanted
        if (known := found[executed[place].row_name].localization) is not None and known.faults
        for step in behind[place]
    ]
    found |= localized(state, [item for item in doubtful if item.row_name not in found])
    result = list(rows)
    for place in wanted:
        result[place] = with_localization(rows[place], executed[place], found, behind[place])
    return tuple(result)


def localized(state: State, items: Sequence[Executed]) -> dict[str, Localized]:
    """What became of looking into each model, by the names of their rows."""
    tasks = {item.row_name: localization_task(state, item) for item in items}
    with state.display.stage("localize", len(tasks)) as stage:
        state.scheduler.run(list(tasks.values()), side_by_side=1, advance=stage.advance)
    results = state.scheduler.results
    return {name: Localized.of(results[task.name], problem_of) for name, task in tasks.items()}


def localization_task(state: State, item: Executed, *, photos: int | None = None) -> Task:
    """Look into a target, beside its reference; a task for the scheduler.

    Args:
        state: The run.
        item: The target.
        photos: How many it may look at as files; default: as many as layers are compared on.
    """
    count = state.config.localize.samples if photos is None else photos
    target, reference = state.subject(item.model), state.subject(item.reference)
    if item.source is None or reference.source is None:
        raise ValueError("nothing to localize")
    sides = {"source": (reference, reference.source), "target": (target, item.source)}
    payload = {
        side: localization_side(
            source, whose.open_sizes_filled(source), *state.data_for(whose, source), _photos(whose, count)
        )
        for side, (whose, source) in sides.items()
    }
    settings = dataclasses.asdict(options_of(state.config, item.intent))
    return Task(
        f"{item.row_name}, localization",
        "localize",
        lambda _: {**payload, "options": settings},
        needs=framework_needs(reference.source.model.framework) | framework_needs(item.source.model.framework),
        timeout=state.config.limits.seconds,
    )


def _photos(subject: Subject, count: int) -> tuple[Path, ...]:
    """The photos that a search of recipes may look at."""
    return () if subject.dataset is None else subject.dataset.photos[:count]

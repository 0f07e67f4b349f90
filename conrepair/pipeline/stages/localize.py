"""Name the layers at fault of targets."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from conrepair.data.tensor_spec import TensorSpec
from conrepair.frameworks.model import from_json
from conrepair.pipeline.compiling import Preparation
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
    debugged = {config.label for config in state.config.backends if config.options.get("debug_enabled")}
    wanted = rows_to_localize(executed, rows, debugged, always=state.config.localize.when == "always")
    found = localized(state, [executed[place] for place in wanted])
    behind = {
        place: steps_before(executed, executed[place]) if executed[place].build is None else [] for place in wanted
    }
    doubtful = [
        step
        for place in wanted
        if (known := found[executed[place].looked_at].localization) is not None and known.faults
        for step in behind[place]
    ]
    found |= localized(state, [item for item in doubtful if item.looked_at not in found])
    result = list(rows)
    for place in wanted:
        result[place] = with_localization(rows[place], executed[place], found, behind[place])
    return tuple(result)


def localized(state: State, items: Sequence[Executed]) -> dict[str, Localized]:
    """What became of looking into each model, or build, by its name."""
    tasks = {item.looked_at: localization_task(state, item) for item in items}
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
    if item.build is not None:
        return _into_build(state, item, count)
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


def _into_build(state: State, item: Executed, count: int) -> Task:
    """Look into what was compiled of a model, beside that model."""
    subject = state.subject(item.model)
    prepared = subject.prepared.get((item.made, item.backend))
    compiled = state.outcome(prepared.result)[0] if isinstance(prepared, Preparation) else item.source
    if item.source is None or compiled is None or item.build is None:
        raise ValueError("a build is made of a model")
    inputs = tuple(from_json(TensorSpec, spec) for spec in item.build.result["build"]["inputs"])
    photos = _photos(subject, count)
    payload = {
        "source": localization_side(
            item.source, subject.open_sizes_filled(item.source), *state.data_for(subject, item.source), photos
        ),
        "target": localization_side(compiled, inputs, *state.data_for(subject, compiled), photos)
        | {"build": {"path": str(item.build.folder), "sha256": item.build.result["sha256"]}},
    }
    settings = dataclasses.asdict(options_of(state.config, item.intent))
    return Task(
        f"{item.looked_at}, localization",
        "localize",
        lambda _: {**payload, "options": settings},
        needs=framework_needs(item.source.model.framework) | framework_needs(compiled.model.framework) | {"tvm"},
        timeout=state.config.limits.seconds,
    )


def _photos(subject: Subject, count: int) -> tuple[Path, ...]:
    """The photos that a search of recipes may look at."""
    return () if subject.dataset is None else subject.dataset.photos[:count]

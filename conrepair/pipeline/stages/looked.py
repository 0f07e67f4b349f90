"""Look at models: the stages up to what differs, in their order, the same for two files and for a whole audit."""

from __future__ import annotations

from conrepair.pipeline.evaluation import Looked, evaluate
from conrepair.pipeline.stages.byte_pictures import prepare_pictures
from conrepair.pipeline.stages.compilation import models_of, prepare
from conrepair.pipeline.stages.conversion import convert, plan
from conrepair.pipeline.stages.drawing import draw
from conrepair.pipeline.stages.execution import execute, execute_sources
from conrepair.pipeline.stages.localizing import unlocalized
from conrepair.pipeline.stages.optimizers import name_optimizers
from conrepair.pipeline.stages.preparation import build
from conrepair.pipeline.stages.rounding import measure_rounding
from conrepair.pipeline.stages.state import RunState

__all__ = ["look_at"]


def look_at(state: RunState) -> Looked:
    """Run the stages that the settings switch on, but for the repair of targets.

    Args:
        state: The run; its subjects and notes are filled in.
    """
    build(state)
    _tell_states(state)
    prepare_pictures(state)
    draw(state)
    _tell_first(state)
    plan(state)
    convert(state)
    prepare(state, models_of(state))
    executed = execute(state)
    rows, pairs = evaluate(state.settings, executed, state.datasets)
    if measure_rounding(state, executed, rows):
        rows, pairs = evaluate(state.settings, executed, state.datasets)
    stages, wanted = state.settings.stages, state.settings.repair
    rows = name_optimizers(state, executed, unlocalized(executed, rows, repairs=stages.repair))
    if stages.repair and wanted.conversions:
        from conrepair.pipeline.stages.conversion_repair import repair_conversions

        executed, rows = repair_conversions(state, executed, rows)
    if stages.localize or (stages.repair and wanted.targets):
        from conrepair.pipeline.stages.localize import localize

        rows = localize(state, executed, rows)
    notes = tuple(state.notes)
    return Looked(
        subjects=tuple(state.subjects), executed=tuple(executed), rows=tuple(rows), pairs=pairs, notes=notes
    )


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

"""Find what lies between a model that takes bytes and one that takes numbers: one of both prepares them itself."""

from __future__ import annotations

import dataclasses
from typing import Any

from conrepair.application.engine.task import Task
from conrepair.application.jobs.values import LikelyRecipe
from conrepair.application.pipeline.datasets import with_ranges
from conrepair.application.pipeline.stages.state import RunState
from conrepair.application.pipeline.subject import Subject
from conrepair.ground.data.input_range import InputRange
from conrepair.ground.data.pictures.byte_pictures import Preparation, in_words, likely_recipes, taken_apart
from conrepair.ground.runtime.errors import ConrepairError
from conrepair.ground.runtime.words import percent

_NEAR = 0.1  # relative L2, with which nobody doubts that it's the preparation
_BYTES = InputRange((0.0,), (255.0,), "bytes", whole=True)


def prepare_pictures(state: RunState) -> None:
    """For each model whose input is a picture as bytes where its source's is one of numbers, or the other way round.

    Args:
        state: Its subjects' data get what was found, its notes what a person should know.
    """
    sides = {item.name: of for item in state.subjects if item.dataset and (of := _sides(state, item)) is not None}
    if state.settings.layers.static:  # nothing is run to find it: it's to make data of the right shape
        for name, both in sides.items():
            _fill_in(state, state.subject(name), Preparation(*both, likely_recipes()[0]))
        return
    tasks = {name: _task(state, state.subject(name), both) for name, both in sides.items()}
    for name, entry in state.all_made("prepare pictures", tasks).items():
        if entry is None:
            continue
        found = entry.read(LikelyRecipe)
        if found.recipe is None:
            state.notes.append(
                f"{name} or its original takes bytes, and no usual preprocessing makes its inputs of bytes"
            )
            continue
        subject = state.subject(name)
        prepared = Preparation(*sides[name], found.recipe)
        _tell(state, subject, prepared, found.error)
        _fill_in(state, subject, prepared)


def _fill_in(state: RunState, subject: Subject, found: Preparation) -> None:
    """What is fed to a model, its source, and what else is compared with that."""
    for other in state.subjects:
        if other.reference == subject.reference and other.dataset is not None:
            other.dataset = dataclasses.replace(other.dataset, prepared=found)
            if other.drawn:
                limits = dataclasses.replace(other.dataset.limits, inputs=(_BYTES,), pictures=True)
                other.dataset = with_ranges(other.dataset, limits)


def _tell(state: RunState, subject: Subject, by: Preparation, error: float | None) -> None:
    reference = state.subject(subject.reference)
    takes_bytes = subject.inputs(subject.loaded)[0].dtype == by.bytes.dtype
    one, other = (subject, reference) if takes_bytes else (reference, subject)
    agree = error is not None and error <= _NEAR
    left = "" if error is None else f"; their outputs then differ by {percent(error)}"
    words = "" if agree else "no usual preprocessing makes the outputs agree; the nearest is taken: "
    how = f"{other.name} gets the same pictures preprocessed by {in_words(by.recipe)}"
    state.tell(f"{words}{one.name} takes bytes, and {how}{left}")


def _sides(state: RunState, subject: Subject) -> tuple[Any, Any] | None:
    """The inputs of a model and its source, bytes first, where that's what they differ by."""
    reference = state.subject(subject.reference)
    if subject is reference or subject.source is None or reference.source is None or subject.recipe is not None:
        return None
    try:
        return taken_apart(reference.inputs(reference.source), subject.open_sizes_filled(subject.source))
    except ConrepairError:  # what is declared doesn't fit, which its own stage says
        return None


def _task(state: RunState, subject: Subject, sides: tuple[Any, Any]) -> Task:
    source, target = state.subject(subject.reference).loaded, subject.loaded
    data = state.data_for(subject, target)[0]
    if data.kind == "synthetic":
        limits = dataclasses.replace(data.limits, inputs=(_BYTES,), pictures=True)
        data = dataclasses.replace(data, samples=(sides[0],), limits=limits)
    payload = {
        "source": source.model.bare,
        "target": target.model.bare,
        "whole": sides[0],
        "reals": sides[1],
        "data": data,
    }
    return state.task(f"{subject.name}, preparation", "preparation", payload, source, target)

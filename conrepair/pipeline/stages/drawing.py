"""Choose the inputs that are drawn: those that the files are made for."""

from __future__ import annotations

from conrepair.engine.scheduler import Task
from conrepair.frameworks.model import from_json, to_json
from conrepair.networks.synthetic_inputs import ChosenValues, Reader
from conrepair.pipeline.datasets import with_ranges
from conrepair.pipeline.stages.state import RunState
from conrepair.pipeline.subject import Subject

__all__ = ["draw"]


def draw(state: RunState) -> None:
    """Choose ranges for every model that runs on synthetic inputs, with what's compared with it.

    Args:
        state: Its datasets get the ranges, its notes what a person should know.
    """
    groups = {
        subject.name: [subject, *(other for other in state.subjects if other.compare_with == subject.name)]
        for subject in state.subjects
        if _draws(subject)
    }
    tasks = {name: _task(state, name, group) for name, group in groups.items()}
    for name, entry in state.all_made("draw", tasks).items():
        if entry is None:
            state.notes.append(f"{name}: nothing could be found out about which inputs it's made for")
            continue
        chosen = from_json(ChosenValues, entry.result["chosen"])
        state.tell(*chosen.notes)
        for subject in groups[name]:
            if subject.dataset is not None:
                subject.dataset = with_ranges(subject.dataset, chosen.limits)


def _draws(subject: Subject) -> bool:
    """Whether inputs are drawn for a model that isn't compared with another."""
    known = subject.dataset is not None and subject.dataset.prepared is not None
    return subject.drawn and subject.source is not None and subject.compare_with is None and not known


def _task(state: RunState, name: str, group: list[Subject]) -> Task:
    made = [(subject, subject.source) for subject in group if subject.source is not None]
    dataset, first = group[0].dataset, group[0].source
    if dataset is None or first is None:
        raise ValueError("nothing is drawn")
    samples = state.data_for(group[0], first)[0].samples
    layers = state.settings.layers
    targets = [Reader(model.model.bare, subject.open_sizes_filled(model)) for subject, model in made[1:]]
    payload = {
        "source": to_json(Reader(first.model.bare, samples)),
        "targets": [to_json(target) for target in targets],
        "limits": to_json(dataset.limits),
        "count": dataset.count,
        "batch": max(2, min(layers.batch_size, layers.samples, dataset.count)),
    }
    return state.task(f"{name}, inputs", "draw_inputs", payload, *(model for _, model in made))

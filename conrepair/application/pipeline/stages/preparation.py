"""Make or describe the sources, and choose the inputs that are drawn for them: those that the files are made for."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conrepair.application.engine.task import Task
from conrepair.application.jobs.values import BuildRequest
from conrepair.application.pipeline.datasets import Dataset, with_ranges
from conrepair.application.pipeline.photos import sized_recipe
from conrepair.application.pipeline.stages.state import RunState, model_of
from conrepair.application.pipeline.subject import Subject
from conrepair.application.report.result import Problem
from conrepair.formats.models.detect import detect_framework, hides_inputs
from conrepair.formats.models.formats import framework_needs
from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import LoadedModel, Model
from conrepair.formats.networks.synthetic_inputs import ChosenValues
from conrepair.ground.data.binding import image_layout
from conrepair.ground.data.input_range import InputRange
from conrepair.ground.data.pictures.named_recipes import RECIPES
from conrepair.ground.data.synthetic import SyntheticRange
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import ConrepairError, UsageError
from conrepair.ground.runtime.files.store import Entry
from conrepair.ground.runtime.path_text import model_path

_PIXELS, _PIXEL = 255.0, 64.0  # the largest; more than any preprocessed one is


def _inputs_from(state: RunState, subject: Subject) -> str | None:
    """The model whose inputs one has whose file doesn't say them: what it's compared with, or is compared with it."""
    if not _is_silent(subject):
        return None
    compared = [other for other in state.subjects if other.compare_with == subject.name]
    known = [other.name for other in compared if not _is_silent(other)]
    return subject.compare_with or next(iter(known), None)


def _is_silent(subject: Subject) -> bool:
    return isinstance(subject.origin, Path) and not subject.declared and hides_inputs(subject.origin)


def _start_decoding(state: RunState) -> None:
    wanted: dict[str, tuple[Dataset, set[Any]]] = {}
    for subject in state.subjects:
        if subject.source is None or subject.recipe is None or subject.dataset is None:
            continue
        try:
            recipe = sized_recipe(subject.recipe, subject.inputs(subject.source))
        except ConrepairError as error:
            subject.source, subject.problem = None, Problem.of(error)
            continue
        dataset, geometries = wanted.setdefault(subject.dataset.sha256, (subject.dataset, set()))
        geometries.add(recipe.spatial)
    if state.settings.stages.execute:
        for dataset, geometries in wanted.values():
            state.photos.prepare(dataset, geometries)


def build(state: RunState) -> None:
    """Make or describe every source; start decoding photos for them."""
    tasks: dict[str, Task] = {}
    with state.display.stage("reading models", len(state.subjects)) as stage:
        origins = {subject.name: _inputs_from(state, subject) for subject in state.subjects}
        for subject in sorted(state.subjects, key=lambda item: origins[item.name] is not None):
            if subject.problem is not None:
                continue
            like = origins[subject.name]
            try:
                tasks[subject.name] = source_task(
                    subject, state.settings.seconds, like=like if like in tasks else None
                )
            except ConrepairError as error:
                subject.problem = Problem.of(error)
        stored = [task for task in tasks.values() if task.kind == "build" and not state.settings.stages.build]
        state.scheduler.take_stored(stored, "stage build is off, and no earlier run built this model")
        state.scheduler.run([state.kept(task) for task in tasks.values() if task not in stored], stage)
    for subject in state.subjects:
        if subject.problem is not None:
            continue
        loading = isinstance(subject.origin, Path)
        subject.source, subject.problem = state.outcome(subject.name, loading=loading)
        if subject.source is not None:
            try:
                subject.inputs(subject.source)
            except ConrepairError as error:
                subject.source, subject.problem = None, Problem.of(error)
    _start_decoding(state)


def source_task(subject: Subject, timeout: float, *, like: str | None = None) -> Task:
    """The task that builds or describes a model.

    Args:
        subject: The model; its origin is known.
        timeout: Of the task, in seconds.
        like: Name of the task of the model whose inputs it has, where its own file doesn't say them.

    Raises:
        ModelLoadError: if its file doesn't exist.
    """
    if isinstance(subject.origin, Path):
        return _described(subject, model_path(subject.origin), timeout, like)
    if subject.origin is None:
        raise ValueError(f"{subject.name} has no origin")
    return _factory_task(subject, subject.origin, timeout)


def _described(subject: Subject, path: Path, timeout: float, like: str | None) -> Task:
    framework = detect_framework(path, recorded=True)
    sha256 = subject.sha256 or model_sha256(path)
    model = Model(framework, str(path), sha256, inputs=subject.declared, trust=subject.trust)

    def make(entries: Mapping[str, Entry]) -> dict[str, Any]:
        inputs = model.inputs
        if like is not None:
            inputs = tuple(map(_as_torch_takes, model_of(entries[like]).description.inputs))
        return {"model": dataclasses.replace(model, inputs=inputs), "place": str(path)}

    depends = () if like is None else (like,)
    return Task(subject.name, "describe", make, depends, framework_needs(framework), timeout)


def _as_torch_takes(spec: TensorSpec) -> TensorSpec:
    """A source's input as PyTorch takes it: by position, images with channels first, real numbers as such."""
    dtype = spec.dtype if spec.quantization is None else "float32"
    spec = dataclasses.replace(spec, name="", dtype=dtype, quantization=None)
    if image_layout(spec) != "NHWC":
        return spec
    batch, height, width, channels = spec.shape
    return dataclasses.replace(spec, shape=(batch, channels, height, width), layout="NCHW")


def _factory_task(subject: Subject, origin: BuildRequest, timeout: float) -> Task:
    request = dataclasses.replace(origin, inputs=subject.declared)
    package = origin.target.split(".")[0]
    needs = framework_needs("keras" if package in {"keras", "tensorflow"} else "torch")
    return Task(subject.name, "build", lambda _: {"request": request}, needs=needs, timeout=timeout)


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
    tell_recipes(state)
    tasks = {name: _task(state, name, group) for name, group in groups.items()}
    for name, entry in state.all_made("draw", tasks).items():
        if entry is None:
            state.notes.append(f"{name}: the range of its inputs couldn't be found out")
            continue
        chosen = entry.read(ChosenValues)
        state.tell(*chosen.notes)
        for subject in groups[name]:
            if subject.dataset is not None:
                subject.dataset = with_ranges(subject.dataset, chosen.limits)


def tell_recipes(state: RunState) -> None:
    """Say whether raw pixels are right for models whose photos nobody said how to preprocess.

    Raises:
        UsageError: if a quantization is to be calibrated with photos that aren't preprocessed.
    """
    unsaid = [item for item in state.subjects if item.guessed and item.compare_with is None and item.recipe]
    tasks = {item.name: _range_task(state, item, item.source) for item in unsaid if item.source is not None}
    for name, entry in state.all_made("read", tasks).items():
        known = None if entry is None else next(iter(entry.read(ChosenValues).limits.inputs), None)
        if known is not None and _takes_pixels(known):
            state.tell(f"{name}: photos go in as raw pixels (no --recipe is given), which it's made for: {known}")
            continue
        if converter := state.subject(name).calibrated:
            raise UsageError(
                f"{converter} calibrates with photos, whose preprocessing decides the ranges, and {name} doesn't say "
                f"that it takes raw pixels. Give --recipe: {', '.join(RECIPES)}."
            )
        made_for = "" if known is None else f", and it's made for {known}"
        state.tell(
            f"{name}: no preprocessing (--recipe) is given: photos go in as raw pixels 0..255{made_for}, so accuracy "
            "means little"
        )


def _takes_pixels(known: InputRange) -> bool:
    """Whether a model is made for pixels as they are, as one with a layer that rescales them."""
    return min(known.low, default=-1.0) >= -_PIXEL and _PIXEL <= max(known.high, default=0.0) <= 2 * _PIXELS


def _range_task(state: RunState, subject: Subject, source: LoadedModel) -> Task:
    """What reads of a model's file which values its inputs are made for, and runs nothing."""
    limits, inputs = SyntheticRange(), subject.inputs(source)
    payload = {"source": source.with_inputs(inputs), "made": (), "limits": limits, "count": 0, "batch": 2}
    return state.task(f"{subject.name}, range", "draw_inputs", payload, source)


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
    payload = {
        "source": first.with_inputs(samples),
        "made": tuple(model.with_inputs(subject.open_sizes_filled(model)) for subject, model in made[1:]),
        "limits": dataset.limits,
        "count": 0 if layers.static else dataset.count,
        "batch": max(2, min(layers.batch_size, layers.samples, dataset.count)),
    }
    return state.task(f"{name}, inputs", "draw_inputs", payload, *(model for _, model in made))

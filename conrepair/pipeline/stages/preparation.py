"""Find what every model runs on, make or describe the sources."""

from __future__ import annotations

from typing import Any

from conrepair.config.model import DatasetConfig, ModelConfig
from conrepair.data.recipe import Recipe
from conrepair.frameworks.detect import hides_inputs
from conrepair.pipeline.datasets import Dataset, resolve_dataset
from conrepair.pipeline.recipes import default_recipe, recipe_from_config, sized_recipe
from conrepair.pipeline.scheduler import Task
from conrepair.pipeline.sources import source_task
from conrepair.pipeline.stages.state import State, Subject, problem_from
from conrepair.runtime.errors import ConfigError, ConrepairError

__all__ = ["build", "resolve"]


def _dataset_config(state: State, model: ModelConfig) -> DatasetConfig:
    """What a model runs on: its own dataset, its reference's, or the audit's."""
    for other in state.config.models:
        if other.name == model.compare_with and other.dataset is not None:
            return other.dataset
    return model.dataset or state.config.dataset


def _recipe(state: State, subject: Subject) -> Recipe:
    if subject.config.recipe is not None:
        try:
            return recipe_from_config(subject.config.recipe)
        except ConrepairError as error:
            raise ConfigError(f"model '{subject.config.name}', recipe: {error}") from error
    recipe, own = default_recipe(subject.config)
    if own or subject.dataset is None or subject.dataset.kind != "photos":
        return recipe
    for other in state.subjects:
        if other.config.name == subject.config.compare_with and other.recipe is not None:
            return other.recipe
    state.notes.append(
        f"{subject.config.name}: no recipe (preprocessing) is configured; photos are given as raw pixels "
        "0..255, so accuracy means little"
    )
    return recipe


def _inputs_from(state: State, subject: Subject) -> str | None:
    """The model whose inputs one has whose file doesn't say them: what it's compared with, or is compared with it."""
    if not _is_silent(state, subject):
        return None
    compared = [other for other in state.subjects if other.config.compare_with == subject.config.name]
    known = [other.config.name for other in compared if not _is_silent(state, other)]
    return subject.config.compare_with or next(iter(known), None)


def _is_silent(state: State, subject: Subject) -> bool:
    path = subject.config.path
    return path is not None and not subject.config.inputs and hides_inputs(state.base / path)


def _start_decoding(state: State) -> None:
    wanted: dict[str, tuple[Dataset, set[Any]]] = {}
    for subject in state.subjects:
        if subject.source is None or subject.recipe is None or subject.dataset is None:
            continue
        try:
            recipe = sized_recipe(subject.recipe, subject.inputs(subject.source))
        except ConrepairError as error:
            subject.source, subject.problem = None, problem_from(error)
            continue
        dataset, geometries = wanted.setdefault(subject.dataset.sha256, (subject.dataset, set()))
        geometries.add(recipe.spatial)
    if state.config.stages.execute:
        for dataset, geometries in wanted.values():
            state.photos.prepare(dataset, geometries)


def resolve(state: State) -> None:
    """Find datasets and recipes; a model whose dataset is unusable is left out, with the reason."""
    errors: dict[DatasetConfig, ConrepairError] = {}
    found: dict[DatasetConfig, Dataset] = {}
    for subject in state.subjects:
        wanted = _dataset_config(state, subject.config)
        if wanted not in found and wanted not in errors:
            try:
                found[wanted] = resolve_dataset(wanted, state.base, progress=state.display.transfer)
            except ConrepairError as error:
                errors[wanted] = error
        subject.dataset = found.get(wanted)
        if subject.dataset is None:
            subject.problem = problem_from(errors[wanted])
        recipe = _recipe(state, subject)
        if subject.dataset is not None and subject.dataset.kind == "photos":
            subject.recipe = recipe
    if errors and not found:
        raise next(iter(errors.values()))
    state.datasets = {subject.config.name: subject.dataset for subject in state.subjects}


def build(state: State) -> None:
    """Make or describe every source; start decoding photos for them."""
    tasks: dict[str, Task] = {}
    with state.display.stage("build", len(state.subjects)) as stage:
        origins = {subject.config.name: _inputs_from(state, subject) for subject in state.subjects}
        for subject in sorted(state.subjects, key=lambda item: origins[item.config.name] is not None):
            if subject.problem is not None:
                continue
            like = origins[subject.config.name]
            try:
                tasks[subject.config.name] = source_task(
                    subject.config,
                    state.base,
                    state.config.limits.seconds,
                    like=like if like in tasks else None,
                    progress=state.display.transfer,
                )
            except ConrepairError as error:
                subject.problem = problem_from(error)
        stored = [task for task in tasks.values() if task.kind == "build" and not state.config.stages.build]
        state.scheduler.take_stored(stored, "stage build is off, and no earlier run built this model")
        state.scheduler.run(
            [state.kept(task) for task in tasks.values() if task not in stored],
            side_by_side=state.config.limits.workers,
            advance=stage.advance,
        )
    for subject in state.subjects:
        if subject.problem is not None:
            continue
        subject.source, subject.problem = state.outcome(subject.config.name)
        if subject.source is not None:
            try:
                subject.inputs(subject.source)
            except ConrepairError as error:
                subject.source, subject.problem = None, problem_from(error)
    _start_decoding(state)

"""What the stages of an audit know: the run, and each model on its way through it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from conrepair.config.model import AuditConfig, ModelConfig
from conrepair.data.feeds import DataReference
from conrepair.data.recipe import Recipe
from conrepair.data.symbolic_sizes import with_sizes_of, with_stated_sizes
from conrepair.data.tensor_spec import TensorSpec, merge_declared, with_declared_sizes
from conrepair.pipeline.compiling import Preparation
from conrepair.pipeline.datasets import Dataset
from conrepair.pipeline.evaluation import problem_of_failure
from conrepair.pipeline.photos import PhotoRoom
from conrepair.pipeline.plan import Conversion, active_models
from conrepair.pipeline.recipes import sized_recipe
from conrepair.pipeline.scheduler import Result, Scheduler, Task
from conrepair.pipeline.sources import Source, declared_inputs, model_of
from conrepair.report.result import Problem
from conrepair.runtime.errors import ConfigError, ConrepairError, UsageError
from conrepair.runtime.progress import ProgressDisplay

__all__ = ["State", "Subject", "problem_from", "problem_of"]


@dataclass
class Subject:
    """A configured model on its way through the audit."""

    config: ModelConfig
    dataset: Dataset | None = None
    recipe: Recipe | None = None
    source: Source | None = None
    problem: Problem | None = None
    conversions: list[Conversion] = field(default_factory=list)
    impossible: dict[str, ConfigError] = field(default_factory=dict)
    prepared: dict[tuple[str, str], Preparation | Problem | None] = field(default_factory=dict)  # by model, backend

    def inputs(self, source: Source) -> tuple[TensorSpec, ...]:
        """A model's inputs, with what the configuration declares about them filled in."""
        return merge_declared(source.description.inputs, declared_inputs(self.config.inputs))

    def open_sizes_filled(self, source: Source) -> tuple[TensorSpec, ...]:
        """A model's inputs, maybe of a conversion that renamed them, with declared sizes where its own are open."""
        return with_declared_sizes(source.description.inputs, declared_inputs(self.config.inputs))

    def chains(self) -> Iterator[list[Conversion]]:
        """The configured routes of a model, conversion by conversion."""
        by_name = {item.name: item for item in self.conversions}
        for conversion in self.conversions:
            chain = [conversion]
            while chain[0].parent in by_name:
                chain.insert(0, by_name[chain[0].parent])
            if conversion.final:
                yield chain


class State:
    """The run: what is configured, what it works with, and what the stages found.

    Attributes:
        keep_failures: Whether failures are stored, whatever they are.
        config: What to do.
        base: Folder that relative paths of the configuration start from.
        display: Shows progress.
        scheduler: Runs tasks; keeps their results.
        photos: Decoded photos.
        subjects: The configured models.
        datasets: What each model runs on, by its name.
        notes: What a person should know.
    """

    def __init__(
        self,
        config: AuditConfig,
        base: Path,
        display: ProgressDisplay,
        scheduler: Scheduler,
        photos: PhotoRoom,
        *,
        keep_failures: bool = False,
    ) -> None:
        self.keep_failures = keep_failures
        self.config = config
        self.base = base
        self.display = display
        self.scheduler = scheduler
        self.photos = photos
        self.subjects = [Subject(model) for model in active_models(config)]
        self.datasets: dict[str, Dataset | None] = {}
        self.notes: list[str] = []
        if not self.subjects:
            raise ConfigError("$.models: every model has skip_analysis; nothing is left to do")

    def subject(self, name: str) -> Subject:
        """A configured model."""
        return next(subject for subject in self.subjects if subject.config.name == name)

    def outcome(self, name: str) -> tuple[Source | None, Problem | None]:
        """What a build or convert task made."""
        result = self.scheduler.results[name]
        if result.entry is not None:
            return model_of(result.entry), None
        return None, problem_of(result)

    def kept(self, task: Task) -> Task:
        """The task with its failures stored, whatever they are, where that's wanted."""
        return dataclasses.replace(task, keep_failure=True, keep_stopped=True) if self.keep_failures else task

    def data_for(self, subject: Subject, source: Source) -> tuple[DataReference, Recipe | None]:
        """The dataset of a configured model as a model made from it takes it, and the recipe for photos."""
        data = self._data(subject)
        if subject.recipe is None or subject.dataset is None:
            return data, None
        recipe = sized_recipe(subject.recipe, subject.open_sizes_filled(source))
        photos = self.photos.reference(subject.dataset, recipe.spatial)
        if any(spec.quantization is not None for spec in data.samples):
            photos = dataclasses.replace(photos, samples=data.samples)
        return photos, recipe

    def _data(self, subject: Subject) -> DataReference:
        dataset = subject.dataset
        if dataset is None:
            raise UsageError(f"model '{subject.config.name}' has no usable dataset")
        reference = next(
            (other for other in self.subjects if other.config.name == subject.config.compare_with),
            subject,
        )
        if reference.source is None:
            raise UsageError(f"'{reference.config.name}', which this model is compared with, could not be loaded")
        inputs = reference.inputs(reference.source)
        return DataReference(
            dataset.kind,
            dataset.count,
            dataset.path,
            dataset.sha256,
            samples=self._sizes_chosen(reference, inputs) if dataset.kind == "synthetic" else inputs,
            limits=dataset.limits,
        )

    def _sizes_chosen(self, reference: Subject, inputs: tuple[TensorSpec, ...]) -> tuple[TensorSpec, ...]:
        """What is drawn for a model and those compared with it: sizes as they have them, else as its file states."""
        for other in self.subjects:
            if other.config.compare_with == reference.config.name and other.source is not None:
                inputs = with_sizes_of(inputs, other.inputs(other.source))
        return with_stated_sizes(inputs)


def problem_from(error: ConrepairError) -> Problem:
    """An error of ours, for a row."""
    return Problem(message=str(error), exit_code=int(error.exit_code))


def problem_of(result: Result) -> Problem:
    """Why a task has no result, for a row."""
    failure = result.failure
    if failure is None:
        return Problem(message=f"not tried: {result.blocked_by} failed")
    return problem_of_failure(failure)

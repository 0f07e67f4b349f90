"""What the stages of a run know: what holds for all models, and each model on its way."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from conrepair.application.engine.problems import problem_of_failure
from conrepair.application.engine.task import Result, Runner, Task
from conrepair.application.pipeline.datasets import Dataset
from conrepair.application.pipeline.photos import PhotoRoom, sized_recipe
from conrepair.application.pipeline.plan import Conversion
from conrepair.application.pipeline.settings import STEPS, Settings
from conrepair.application.pipeline.subject import Subject
from conrepair.application.report.result import Problem
from conrepair.application.report.row_paths import placed, resolved_in
from conrepair.formats.models.formats import framework_needs
from conrepair.formats.models.model import LoadedModel
from conrepair.ground.data.feeds import DataReference
from conrepair.ground.data.pictures.recipe import Recipe
from conrepair.ground.data.symbolic_sizes import with_sizes_of, with_stated_sizes
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import ConfigError, UsageError
from conrepair.ground.runtime.files.store import Entry
from conrepair.ground.runtime.shown.progress import ProgressDisplay

_Key = TypeVar("_Key")


@dataclass
class RunState:
    """The run: what holds for all, what it works with, and what the stages found.

    Attributes:
        settings: What to do.
        subjects: The models.
        display: Shows progress.
        scheduler: Runs tasks; keeps their results.
        photos: Decoded photos.
        notes: What a person should know.
        keep_failures: Whether failures are stored, whatever they are.
        conversions: The steps towards the goals of each model, by its name.
        impossible: Why a goal can't be reached, by the model's name and what was wanted.
        prepared: What was converted for a backend, by model and backend.
        fed: The dataset of each specification as its models take it, by its name, with what that was made of.
        limit: Of inputs that models run on; None: all.
    """

    settings: Settings
    subjects: list[Subject]
    display: ProgressDisplay
    scheduler: Runner
    photos: PhotoRoom
    notes: list[str] = field(default_factory=list)
    keep_failures: bool = False
    conversions: dict[str, list[Conversion]] = field(default_factory=lambda: defaultdict(list))
    impossible: dict[str, dict[str, ConfigError]] = field(default_factory=lambda: defaultdict(dict))
    prepared: dict[tuple[str, str], tuple[Conversion, ...] | Problem] = field(default_factory=dict)
    fed: dict[str, tuple[Dataset, DataReference]] = field(default_factory=dict)
    limit: int | None = None

    @property
    def datasets(self) -> dict[str, Dataset | None]:
        """What each model runs on, by its name."""
        return {item.name: item.dataset for item in self.subjects}

    def subject(self, name: str) -> Subject:
        """A model of the run."""
        return {subject.name: subject for subject in self.subjects}[name]

    def run(self, words: str, tasks: Collection[Task], otherwise: str = "") -> None:
        """Run tasks, and show that under a name.

        Args:
            words: The name.
            tasks: In any order.
            otherwise: Where none is to be run: what to say of one that no earlier run did.
        """
        if otherwise:
            self.scheduler.take_stored(list(tasks), otherwise)
            return
        if tasks:
            with self.display.stage(words, len(tasks)) as stage:
                self.scheduler.run(list(tasks), stage)

    def made(self, task: Task) -> Entry | None:
        """Run a task; what it made, if that succeeds."""
        self.scheduler.run([task])
        return self.scheduler.results[task.name].entry

    def all_made(self, words: str, tasks: Mapping[_Key, Task]) -> dict[_Key, Entry | None]:
        """Run tasks, and show that under a name; what each made, if it succeeded."""
        self.run(words, tasks.values())
        return {key: self.scheduler.results[task.name].entry for key, task in tasks.items()}

    def tell(self, *notes: str) -> None:
        """Note what a person should know, and show it at once."""
        self.notes += notes
        for note in notes:
            self.display.note(note)

    def outcome(self, name: str, *, loading: bool = False) -> tuple[LoadedModel | None, Problem | None]:
        """What a build or convert task made, or one found that did nothing but load a model."""
        result = self.scheduler.results[name]
        if result.entry is not None:
            return model_of(result.entry), None
        return None, problem_of(result, loading=loading)

    def task(
        self,
        name: str,
        kind: str,
        payload: dict[str, Any],
        *models: LoadedModel,
        needs: Collection[str] = (),
        **more: Any,
    ) -> Task:
        """A task of models, which needs what loads them, and has the time of an execution.

        Args:
            name: Of the task.
            kind: Of its job.
            payload: The job's.
            *models: That it loads.
            needs: What else it imports.
            **more: As `Task` has it.
        """
        own = (framework_needs(item.model.framework) for item in models)
        needed = frozenset(needs).union(*own)
        return Task(name, kind, lambda _: payload, needs=needed, timeout=self.settings.seconds, **more)

    def kept(self, task: Task) -> Task:
        """The task with its failures stored, whatever they are, where that's wanted."""
        return dataclasses.replace(task, keep_failure=True, keep_stopped=True) if self.keep_failures else task

    def data_for(self, subject: Subject, source: LoadedModel) -> tuple[DataReference, Recipe | None]:
        """The dataset of a model as a model made from it takes it, and the recipe for photos."""
        data = self._data(subject)
        if subject.recipe is None or subject.dataset is None:
            return data, None
        recipe = sized_recipe(subject.recipe, subject.open_sizes_filled(source))
        photos = self.photos.reference(subject.dataset, recipe.spatial)
        if any(spec.quantization is not None for spec in data.samples):
            photos = dataclasses.replace(photos, samples=data.samples)
        return photos, recipe

    def _compared(self, subject: Subject) -> list[LoadedModel]:
        """A model and those that it's compared with, as far as they could be loaded."""
        return [
            other.source
            for other in self.subjects
            if other.reference == subject.reference and other.source is not None
        ]

    def rows_of(self, subject: Subject) -> int | None:
        """How many rows a batch has where one of the models keeps a state, which has as many; else None."""
        group = self._compared(subject)
        if not any(model.description.states for model in group):
            return None
        sizes = [spec.shape[0] for model in group for spec in model.description.inputs if spec.shape]
        return max((size for size in sizes if isinstance(size, int)), default=1)

    def steps_of(self, subject: Subject) -> int:
        """How many inputs in a row make a sample of a model, and of those that it's compared with."""
        return self.settings.steps or (1 if self.rows_of(subject) is None else STEPS)

    def _data(self, subject: Subject) -> DataReference:
        dataset = subject.dataset
        if dataset is None:
            raise UsageError(f"model '{subject.name}' has no usable dataset")
        reference = self.subject(subject.reference)
        if reference.source is None:
            raise UsageError(f"'{reference.name}', which this model is compared with, could not be loaded")
        made = self.fed.get(reference.name)
        if made is not None and made[0] == dataset:
            return made[1]
        inputs, known = reference.inputs(reference.source), dataset.prepared
        if known is not None and dataset.kind == "synthetic":
            samples: tuple[TensorSpec, ...] = (known.bytes,)
        elif dataset.kind == "photos":
            samples = inputs
        else:
            samples = self._as_compared(reference, inputs, dataset.kind)
        fed = DataReference(
            dataset.kind,
            dataset.count,
            dataset.path,
            dataset.sha256,
            samples=samples,
            limits=dataset.limits,
            prepared=known,
        )
        self.fed[reference.name] = dataset, fed
        return fed

    def _as_compared(self, reference: Subject, inputs: tuple[TensorSpec, ...], kind: str) -> tuple[TensorSpec, ...]:
        """What a model and those compared with it take: sizes as they have them; of what's drawn, else as stated."""
        for other in self.subjects:
            if other.compare_with == reference.name and other.source is not None:
                inputs = with_sizes_of(inputs, other.inputs(other.source))
        chosen = () if reference.limits is None else reference.limits.shapes
        if chosen:
            return tuple(dataclasses.replace(spec, shape=shape) for spec, shape in zip(inputs, chosen, strict=True))
        return with_stated_sizes(inputs) if kind == "synthetic" else inputs


def problem_of(result: Result, *, loading: bool = False) -> Problem:
    """Why a task has no result, for a row; of one that only loads a model, that it can't be loaded."""
    if result.failure is not None:
        return problem_of_failure(result.failure, loading=loading)
    message = f"not tried: {result.blocked_by} failed"
    if result.because is None:
        return Problem(message=message)
    whose = problem_of_failure(result.because)  # what isn't tried for want of a library is no model's fault either
    return Problem(message=message, exit_code=whose.exit_code, circumstance=whose.circumstance, kind=whose.kind)


def model_of(entry: Entry) -> LoadedModel:
    """The model that a finished task made or described."""
    made = entry.read(LoadedModel)
    return dataclasses.replace(made, model=placed(made.model, resolved_in(entry.folder)))

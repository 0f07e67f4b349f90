"""A whole audit: build, convert, execute, evaluate."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conrepair.backends.registry import COMPILERS, backend
from conrepair.config.model import AuditConfig, BackendConfig, DatasetConfig, LibrariesConfig, ModelConfig
from conrepair.data.feeds import DataReference
from conrepair.data.recipe import Recipe
from conrepair.data.tensor_spec import TensorSpec, merge_declared, with_declared_sizes
from conrepair.evaluate.compare import Comparison
from conrepair.frameworks.model import to_json
from conrepair.pipeline.architectures import architecture_models, audit_one_by_one, model_folders
from conrepair.pipeline.compiling import (
    Preparation,
    backend_options,
    check_backends,
    compile_payload,
    plan_preparation,
)
from conrepair.pipeline.datasets import Dataset, resolve_dataset
from conrepair.pipeline.evaluation import Executed, evaluate, problem_of_failure
from conrepair.pipeline.fingerprint import library_versions
from conrepair.pipeline.jobs import conversion_payload
from conrepair.pipeline.localization import (
    Localized,
    localization_side,
    options_of,
    rows_to_localize,
    steps_before,
    with_localization,
)
from conrepair.pipeline.photos import PhotoRoom
from conrepair.pipeline.plan import Conversion, active_models, check_converters, plan_conversions
from conrepair.pipeline.recipes import default_recipe, recipe_from_config, sized_recipe
from conrepair.pipeline.repairing import rows_to_repair, with_repair
from conrepair.pipeline.scheduler import Result, Scheduler, Task
from conrepair.pipeline.sources import Source, declared_inputs, framework_needs, model_of, source_task
from conrepair.report.result import AuditResult, Problem, Row
from conrepair.report.write import check_folder
from conrepair.runtime.errors import ConfigError, ConrepairError, UsageError
from conrepair.runtime.progress import ProgressDisplay
from conrepair.runtime.store import Entry, Store
from conrepair.runtime.workers import Workers

__all__ = ["run_audit"]

_SECOND_OPINION_SAMPLES = 16


@dataclass
class _Subject:
    """A configured model on its way through the audit."""

    config: ModelConfig
    dataset: Dataset | None = None
    recipe: Recipe | None = None
    source: Source | None = None
    problem: Problem | None = None
    conversions: list[Conversion] = field(default_factory=list)
    impossible: dict[str, ConfigError] = field(default_factory=dict)
    prepared: dict[tuple[str, str], Preparation | Problem | None] = field(default_factory=dict)  # by model, backend


def run_audit(
    config: AuditConfig,
    base: Path,
    display: ProgressDisplay,
    use: contextlib.ExitStack | None = None,
    tell: Callable[[AuditResult], None] = lambda _: None,
) -> AuditResult:
    """Run the stages that the configuration switches on.

    Args:
        config: What to do.
        base: Folder that relative paths of the configuration start from.
        display: Shows progress.
        use: Keeps the store in use until it's left: until the files are written. Default: until this returns.
        tell: Called with the result so far when an architecture of a list is done.

    Returns:
        The result; files of the run's folder are not written yet.

    Raises:
        ConfigError: if a route or option is wrong.
        DataError: if the dataset of every model is unusable.
        StorageError: if the output folder can't be written.
        UsageError: if another run makes everything in the store anew, or this one would under another's hands.
    """
    started = time.perf_counter()
    check_converters(config)
    check_backends(config)
    architectures = architecture_models(config)
    output = base / config.output
    check_folder(output / config.name, _input_paths(config, base))

    def so_far(parts: Sequence[_Part]) -> None:
        tell(_result(config, output, parts, architectures, time.perf_counter() - started))

    with contextlib.ExitStack() as own:
        store = (use or own).enter_context(Store(output / "store", fresh=not config.reuse))
        parts = _run_parts(config, base, display, store, architectures, so_far)
    return _result(config, output, parts, architectures, time.perf_counter() - started)


@dataclass(frozen=True)
class _Part:
    """The result of some of an audit's models."""

    subjects: list[_Subject]
    rows: tuple[Row, ...]
    pairs: tuple[Comparison, ...]
    notes: list[str]


def _result(
    config: AuditConfig,
    output: Path,
    parts: Sequence[_Part],
    architectures: Sequence[ModelConfig],
    seconds: float,
) -> AuditResult:
    subjects = [subject for part in parts for subject in part.subjects]
    listed = {model.name for model in architectures}
    return AuditResult(
        name=config.name,
        folder=output / config.name,
        rows=tuple(row for part in parts for row in part.rows),
        samples={subject.dataset.about: subject.dataset.names for subject in subjects if subject.dataset},
        datasets={subject.config.name: subject.dataset.about for subject in subjects if subject.dataset},
        recipes={
            subject.config.name: dataclasses.asdict(subject.recipe) if subject.recipe else None
            for subject in subjects
        },
        pairs=tuple(pair for part in parts for pair in part.pairs),
        versions=library_versions(),
        config=config.model_dump(mode="json", by_alias=True),
        seconds=seconds,
        top_k=config.top_k,
        notes=tuple(note for part in parts for note in part.notes),
        architectures=tuple(subject.config.name for subject in subjects if subject.config.name in listed),
    )


def _run_parts(
    config: AuditConfig,
    base: Path,
    display: ProgressDisplay,
    store: Store,
    architectures: list[ModelConfig],
    so_far: Callable[[Sequence[_Part]], None],
) -> list[_Part]:
    """Run all models together, then each architecture by itself."""
    photos = PhotoRoom(store, reuse=config.reuse)
    folders = str(Path.cwd()), str(base)
    parts: list[_Part] = []
    with Workers(config.limits.workers, folders, memory_gb=config.limits.memory_gb) as workers:
        scheduler = Scheduler(store, workers, reuse=config.reuse)
        try:
            if config.models:
                parts.append(_run_part(_Audit(config, base, display, scheduler, photos)))

            def one(model: ModelConfig, scheduler: Scheduler) -> _Part:
                alone = config.model_copy(update={"models": (model,)})
                return _run_part(_Audit(alone, base, display, scheduler, photos, keep_failures=True))

            if architectures:
                kept = model_folders(scheduler)
                for part in audit_one_by_one(architectures, one, config, store, workers, display, kept):
                    parts.append(part)
                    so_far(parts)
        finally:
            photos.close()
    return parts


def _run_part(audit: _Audit) -> _Part:
    audit.resolve()
    audit.build()
    audit.plan()
    audit.convert()
    audit.prepare()
    executed = audit.execute()
    rows, pairs = evaluate(audit.config, executed, audit.datasets)
    if audit.config.stages.localize or audit.config.stages.repair:
        rows = audit.localize(executed, rows)
    if audit.config.stages.repair:
        rows = audit.repair(executed, rows)
    return _Part(audit.subjects, rows, pairs, audit.notes)


class _Audit:
    """The stages, in order; each leaves its results in the subjects and the scheduler."""

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
        self.subjects = [_Subject(model) for model in active_models(config)]
        self.datasets: dict[str, Dataset | None] = {}
        self.notes: list[str] = []
        if not self.subjects:
            raise ConfigError("$.models: every model has skip_analysis; nothing is left to do")

    # --- stages -------------------------------------------------------------------------------------------

    def resolve(self) -> None:
        """Find datasets and recipes; a model whose dataset is unusable is left out, with the reason."""
        errors: dict[DatasetConfig, ConrepairError] = {}
        found: dict[DatasetConfig, Dataset] = {}
        for subject in self.subjects:
            wanted = self._dataset_config(subject.config)
            if wanted not in found and wanted not in errors:
                try:
                    found[wanted] = resolve_dataset(wanted, self.base, progress=self.display.transfer)
                except ConrepairError as error:
                    errors[wanted] = error
            subject.dataset = found.get(wanted)
            if subject.dataset is None:
                subject.problem = _problem(errors[wanted])
            recipe = self._recipe(subject)
            if subject.dataset is not None and subject.dataset.kind == "photos":
                subject.recipe = recipe
        if errors and not found:
            raise next(iter(errors.values()))
        self.datasets = {subject.config.name: subject.dataset for subject in self.subjects}

    def build(self) -> None:
        """Make or describe every source; start decoding photos for them."""
        tasks = []
        with self.display.stage("build", len(self.subjects)) as stage:
            for subject in self.subjects:
                if subject.problem is not None:
                    continue
                try:
                    tasks.append(
                        source_task(
                            subject.config,
                            self.base,
                            self.config.limits.seconds,
                            progress=self.display.transfer,
                        )
                    )
                except ConrepairError as error:
                    subject.problem = _problem(error)
            stored = [task for task in tasks if task.kind == "build" and not self.config.stages.build]
            self.scheduler.take_stored(stored, "stage build is off, and no earlier run built this model")
            self.scheduler.run(
                [self._kept(task) for task in tasks if task not in stored],
                side_by_side=self.config.limits.workers,
                advance=stage.advance,
            )
        for subject in self.subjects:
            if subject.problem is not None:
                continue
            subject.source, subject.problem = self._outcome(subject.config.name)
            if subject.source is not None:
                try:
                    self._inputs(subject, subject.source)
                except ConrepairError as error:
                    subject.source, subject.problem = None, _problem(error)
        self._start_decoding()

    def plan(self) -> None:
        """Find the routes of every source."""
        for subject in self.subjects:
            if subject.source is not None:
                subject.conversions, subject.impossible = plan_conversions(subject.config, subject.source.model)

    def convert(self) -> None:
        """Run all conversions, side by side."""
        tasks = [
            self._conversion_task(subject, conversion, self._inputs(subject, subject.source))
            for subject in self.subjects
            if subject.source is not None
            for conversion in subject.conversions
        ]
        if not self.config.stages.convert:
            self.scheduler.take_stored(tasks, "stage convert is off, and no earlier run made this conversion")
            for subject in self.subjects:
                subject.conversions = [
                    item for item in subject.conversions if self.scheduler.results[item.name].entry is not None
                ]
            return
        with self.display.stage("convert", len(tasks)) as stage:
            self.scheduler.run(tasks, side_by_side=self.config.limits.workers, advance=stage.advance)

    def prepare(self) -> None:
        """Convert models for backends that read other formats."""
        tasks: dict[str, Task] = {}
        for subject in self.subjects:
            if subject.source is None:
                continue
            made = {item.name: self._outcome(item.name)[0] for item in subject.conversions}
            for name, source in {subject.config.name: subject.source, **made}.items():
                for config in self._backends(source) if source is not None else []:
                    tasks |= self._plan_preparation(subject, name, source, config)
        unmade = [task for name, task in tasks.items() if name not in self.scheduler.results]
        if not (self.config.stages.convert and self.config.stages.execute):
            self.scheduler.take_stored(unmade, "no earlier run made this conversion")
        elif unmade:
            with self.display.stage("convert", len(unmade)) as stage:
                self.scheduler.run(unmade, side_by_side=self.config.limits.workers, advance=stage.advance)

    def _plan_preparation(
        self, subject: _Subject, name: str, source: Source | None, config: BackendConfig
    ) -> dict[str, Task]:
        if source is None or subject.source is None:
            return {}
        try:
            found = plan_preparation(name, source.model, config)
        except ConrepairError as error:
            subject.prepared[name, config.label] = _problem(error)
            return {}
        subject.prepared[name, config.label] = found
        inputs = self._inputs(subject, subject.source)
        return {
            item.name: self._conversion_task(subject, item, inputs) for item in (found.conversions if found else ())
        }

    def execute(self) -> list[Executed]:
        """Compile, and run every model on every backend, one at a time so that times mean something."""
        executed: list[Executed] = []
        builds: list[Task] = []
        tasks: list[Task] = []
        for subject in self.subjects:
            executed += self._plan_executions(subject, builds, tasks)
        if self.config.stages.execute and builds:
            self._compile(builds)
        elif builds:
            self.scheduler.take_stored(builds, "stage execute is off, and no earlier run compiled this")
        if self.config.stages.execute:
            with self.display.stage("execute", len(tasks)) as stage:
                self.scheduler.run(tasks, side_by_side=1, advance=stage.advance)
        else:
            self.scheduler.take_stored(tasks, "stage execute is off, and no earlier run did it")
            for item in executed:
                if item.task is not None and self.scheduler.results[item.task].entry is None:
                    item.task = None  # a row without a run, not a failure
        unreadable = self.photos.wait()
        for item in executed:
            if item.task is not None:
                item.result = self.scheduler.results[item.task]
                dataset = self.datasets.get(item.model)
                if item.result.entry is None and dataset is not None and dataset.sha256 in unreadable:
                    item.problem = _problem(unreadable[dataset.sha256])
            if item.second_task is not None:
                item.second = self.scheduler.results[item.second_task].entry
            if item.build_task is not None:
                item.build = self.scheduler.results[item.build_task].entry
                if item.build is None:
                    item.problem = _problem_of(self.scheduler.results[item.build_task])
        return executed

    def _compile(self, builds: Sequence[Task]) -> None:
        """Compile side by side; what measures on the way (tuning) alone."""
        alone = [task for task in builds if task.alone]
        with self.display.stage("compile", len(builds)) as stage:
            others = [task for task in builds if task not in alone]
            self.scheduler.run(others, side_by_side=self.config.limits.workers, advance=stage.advance)
            self.scheduler.run(alone, side_by_side=1, advance=stage.advance)

    def localize(self, executed: Sequence[Executed], rows: Sequence[Row]) -> tuple[Row, ...]:
        """Name the layers at fault of targets, and the steps of their conversions."""
        wanted = rows_to_localize(executed, rows, always=self.config.localize.when == "always")
        found = self._localized([executed[place] for place in wanted])
        behind = {place: steps_before(executed, executed[place]) for place in wanted}
        doubtful = [
            step
            for place in wanted
            if (known := found[executed[place].row_name].localization) is not None and known.faults
            for step in behind[place]
        ]
        found |= self._localized([item for item in doubtful if item.row_name not in found])
        result = list(rows)
        for place in wanted:
            result[place] = with_localization(rows[place], executed[place], found, behind[place])
        return tuple(result)

    def _localized(self, items: Sequence[Executed]) -> dict[str, Localized]:
        tasks = {item.row_name: self._localization_task(item) for item in items}
        with self.display.stage("localize", len(tasks)) as stage:
            self.scheduler.run(list(tasks.values()), side_by_side=1, advance=stage.advance)
        results = self.scheduler.results
        return {name: Localized.of(results[task.name], _problem_of) for name, task in tasks.items()}

    def repair(self, executed: Sequence[Executed], rows: Sequence[Row]) -> tuple[Row, ...]:
        """Mend targets with layers at fault."""
        places = rows_to_repair(rows)
        tasks = {place: self._repair_task(executed[place]) for place in places}
        with self.display.stage("repair", len(tasks)) as stage:
            self.scheduler.run(list(tasks.values()), side_by_side=1, advance=stage.advance)
        result = list(rows)
        for place, task in tasks.items():
            result[place] = with_repair(rows[place], self.scheduler.results[task.name], _problem_of)
        return tuple(result)

    def _repair_task(self, item: Executed) -> Task:
        """As for a localization, with what a repair needs besides."""
        task, own = self._localization_task(item), self.config.repair.model_dump()
        return dataclasses.replace(
            task,
            name=f"{item.row_name}, repair",
            kind="repair",
            payload=lambda entries: {**task.payload(entries), **own},
            timeout=self.config.limits.seconds + self.config.repair.seconds,
        )

    def _localization_task(self, item: Executed) -> Task:
        target, reference = (
            next(subject for subject in self.subjects if subject.config.name == name)
            for name in (item.model, item.reference)
        )
        if item.source is None or reference.source is None:
            raise ValueError("nothing to localize")
        sides = {"source": (reference, reference.source), "target": (target, item.source)}
        payload = {
            side: localization_side(
                source, self._open_sizes_filled(whose, source), *self._data_for(whose, source), self._photos(whose)
            )
            for side, (whose, source) in sides.items()
        }
        settings = dataclasses.asdict(options_of(self.config, item.intent))
        return Task(
            f"{item.row_name}, localization",
            "localize",
            lambda _: {**payload, "options": settings},
            needs=framework_needs(reference.source.model.framework) | framework_needs(item.source.model.framework),
            timeout=self.config.limits.seconds,
        )

    def _photos(self, subject: _Subject) -> tuple[Path, ...]:
        """The photos that a search of recipes may look at."""
        return () if subject.dataset is None else subject.dataset.photos[: self.config.localize.samples]

    # --- one model ----------------------------------------------------------------------------------------

    def _dataset_config(self, model: ModelConfig) -> DatasetConfig:
        """What a model runs on: its own dataset, its reference's, or the audit's."""
        for other in self.config.models:
            if other.name == model.compare_with and other.dataset is not None:
                return other.dataset
        return model.dataset or self.config.dataset

    def _recipe(self, subject: _Subject) -> Recipe:
        if subject.config.recipe is not None:
            try:
                return recipe_from_config(subject.config.recipe)
            except ConrepairError as error:
                raise ConfigError(f"model '{subject.config.name}', recipe: {error}") from error
        recipe, own = default_recipe(subject.config)
        if own or subject.dataset is None or subject.dataset.kind != "photos":
            return recipe
        for other in self.subjects:
            if other.config.name == subject.config.compare_with and other.recipe is not None:
                return other.recipe
        self.notes.append(
            f"{subject.config.name}: no recipe (preprocessing) is configured; photos are given as raw pixels "
            "0..255, so accuracy means little"
        )
        return recipe

    def _start_decoding(self) -> None:
        wanted: dict[str, tuple[Dataset, set[Any]]] = {}
        for subject in self.subjects:
            if subject.source is None or subject.recipe is None or subject.dataset is None:
                continue
            try:
                recipe = sized_recipe(subject.recipe, self._inputs(subject, subject.source))
            except ConrepairError as error:
                subject.source, subject.problem = None, _problem(error)
                continue
            dataset, geometries = wanted.setdefault(subject.dataset.sha256, (subject.dataset, set()))
            geometries.add(recipe.spatial)
        if self.config.stages.execute:
            for dataset, geometries in wanted.values():
                self.photos.prepare(dataset, geometries)

    def _outcome(self, name: str) -> tuple[Source | None, Problem | None]:
        """What a build or convert task made."""
        result = self.scheduler.results[name]
        if result.entry is not None:
            return model_of(result.entry), None
        return None, _problem_of(result)

    def _conversion_task(self, subject: _Subject, conversion: Conversion, inputs: tuple[TensorSpec, ...]) -> Task:
        step = conversion.step
        calibrates = step.calibrates(conversion.options) > 0

        def payload(entries: Mapping[str, Entry]) -> dict[str, Any]:
            parent = model_of(entries[conversion.parent])
            data = self._data_for(subject, parent) if calibrates else None
            return conversion_payload(parent.model, step, conversion.options, inputs, data)

        task = Task(
            conversion.name,
            "convert",
            payload,
            depends=(conversion.parent,),
            needs=step.needs,
            timeout=self.config.limits.seconds,
            # Whether data can be read depends on more than the payload: the photos are still being decoded.
            keep_failure=not calibrates,
            prepare=lambda: step.prepare(self.display),
        )
        return self._kept(task)

    def _kept(self, task: Task) -> Task:
        """The task with its failures stored, whatever they are, where that's wanted."""
        return dataclasses.replace(task, keep_failure=True, keep_stopped=True) if self.keep_failures else task

    def _plan_executions(self, subject: _Subject, builds: list[Task], tasks: list[Task]) -> list[Executed]:
        reference = subject.config.compare_with or subject.config.name
        kind = "target" if subject.config.compare_with else "reference"

        def planned(name: str, executed: Executed, config: BackendConfig) -> Executed:
            self._plan_execution(subject, name, executed, config, builds, tasks)
            return executed

        def item(conversion: str, kind: str, label: str, source: Source | None, problem: Problem | None) -> Executed:
            return Executed(subject.config.name, reference, conversion, label, kind, source, problem)

        result = [
            planned(subject.config.name, item("", kind, config.label, subject.source, subject.problem), config)
            for config in self._backends(subject.source)
        ]
        for wanted, error in subject.impossible.items():
            result.append(item(wanted, "target", self.config.backends[0].label, None, _problem(error)))
        for conversion in subject.conversions:
            made, problem = self._outcome(conversion.name)
            kind = "target" if conversion.final else "intermediate"
            for config in self._backends(made):
                executed = item(conversion.route, kind, config.label, made, problem)
                executed.asked = conversion.asked
                executed.origin = subject.source.description.precision if subject.source is not None else None
                result.append(planned(conversion.name, executed, config))
        return result

    def _backends(self, source: Source | None) -> list[BackendConfig]:
        """The configured backends that run a model, compilers last; its own library where none else does.

        What a compiler makes is judged against the model as it is, so there's a row of that. A model that wasn't
        made gets one row, on the first.
        """
        if source is None:
            return list(self.config.backends[:1])
        willing = [config for config in self.config.backends if backend(config.name).refuses(source.model) is None]
        compilers = [config for config in willing if config.name in COMPILERS]
        return ([config for config in willing if config not in compilers] or [LibrariesConfig()]) + compilers

    def _plan_execution(
        self,
        subject: _Subject,
        name: str,
        executed: Executed,
        config: BackendConfig,
        builds: list[Task],
        tasks: list[Task],
    ) -> None:
        """Add the tasks that run a model on a backend; what speaks against it is the item's problem.

        Args:
            subject: The configured model.
            name: Of the task that made the model.
            executed: What is to be run.
            config: Where.
            builds: Receives a compilation.
            tasks: Receives the executions.
        """
        source, original = executed.source, executed.source
        if source is None or original is None or executed.problem is not None:
            return
        prepared = subject.prepared.get((name, config.label))
        if isinstance(prepared, Problem):
            executed.problem = prepared
            return
        if prepared is not None:
            executed.via = prepared.route
            source, executed.problem = self._outcome(prepared.result)
        if source is None:
            return
        task_name = f"{executed.row_name}@{config.label}"
        try:
            options = backend_options(config, self.base)
            payload = self._execution(subject, source, config.name, options)
            if config.name in COMPILERS:
                build = self._compile_task(f"{task_name}, build", source, config, options)
                builds.append(build)
                executed.build_task = build.name
        except ConrepairError as error:
            executed.problem = _problem(error)
            return
        tasks.append(self._execution_task(task_name, source, payload, executed.build_task))
        executed.task = task_name
        if executed.kind == "reference" and config == self._backends(original)[0]:
            second = payload | {
                "backend": "libraries",
                "options": {"second_opinion": True},
                "limit": _SECOND_OPINION_SAMPLES,
            }
            executed.second_task = f"{task_name}, second opinion"
            tasks.append(self._execution_task(executed.second_task, source, second))

    def _compile_task(self, name: str, source: Source, config: BackendConfig, options: Mapping[str, Any]) -> Task:
        payload = compile_payload(source.model, config, options, self.config.batch_size, runs=True)
        task = Task(
            name,
            "compile",
            lambda _: payload,
            needs=framework_needs(source.model.framework) | {config.name},
            timeout=self.config.limits.seconds,
            alone=options.get("setting") == "tuned",
        )
        return self._kept(task)

    def _execution_task(
        self, name: str, source: Source, payload: dict[str, Any], build_task: str | None = None
    ) -> Task:
        def complete(entries: Mapping[str, Entry]) -> dict[str, Any]:
            if build_task is None:
                return payload
            entry = entries[build_task]
            build = {"path": str(entry.folder), "sha256": entry.result["sha256"]}
            return payload | {"options": payload["options"] | {"build": build}}

        task = Task(
            name,
            "execute",
            complete,
            depends=() if build_task is None else (build_task,),
            needs=framework_needs(source.model.framework) if build_task is None else frozenset({payload["backend"]}),
            timeout=self.config.limits.seconds,
        )
        return self._kept(task)

    def _execution(
        self, subject: _Subject, source: Source, backend_name: str, options: Mapping[str, Any]
    ) -> dict[str, Any]:
        data, recipe = self._data_for(subject, source)
        return {
            "model": to_json(dataclasses.replace(source.model, provenance=None)),
            "backend": backend_name,
            "options": dict(options),
            "data": to_json(data),
            "recipe": None if recipe is None else dataclasses.asdict(recipe),
            "batch_size": self.config.batch_size,
            "limit": None,
        }

    def _data_for(self, subject: _Subject, source: Source) -> tuple[DataReference, Recipe | None]:
        """The dataset of a configured model as a model made from it takes it, and the recipe for photos."""
        data = self._data(subject)
        if subject.recipe is None or subject.dataset is None:
            return data, None
        recipe = sized_recipe(subject.recipe, self._open_sizes_filled(subject, source))
        return self.photos.reference(subject.dataset, recipe.spatial), recipe

    def _data(self, subject: _Subject) -> DataReference:
        dataset = subject.dataset
        if dataset is None:
            raise UsageError(f"model '{subject.config.name}' has no usable dataset")
        reference = next(
            (other for other in self.subjects if other.config.name == subject.config.compare_with),
            subject,
        )
        if reference.source is None:
            raise UsageError(f"'{reference.config.name}', which this model is compared with, could not be loaded")
        return DataReference(
            dataset.kind,
            dataset.count,
            dataset.path,
            dataset.sha256,
            samples=self._inputs(reference, reference.source),
            limits=dataset.limits,
        )

    @staticmethod
    def _open_sizes_filled(subject: _Subject, source: Source) -> tuple[TensorSpec, ...]:
        """A model's inputs, maybe of a conversion that renamed them, with declared sizes where its own are open."""
        return with_declared_sizes(source.description.inputs, declared_inputs(subject.config.inputs))

    @staticmethod
    def _inputs(subject: _Subject, source: Source) -> tuple[TensorSpec, ...]:
        """A model's inputs, with what the configuration declares about them filled in."""
        return merge_declared(source.description.inputs, declared_inputs(subject.config.inputs))


def _input_paths(config: AuditConfig, base: Path) -> list[Path]:
    """Every file and folder of the user's that the audit reads."""
    names = [name for model in config.models for name in (model.path, model.weights)]
    for dataset in (config.dataset, *(model.dataset for model in config.models)):
        names += [dataset.folder, dataset.tensors] if dataset is not None else []
    return [base / name for name in names if name is not None]


def _problem(error: ConrepairError) -> Problem:
    return Problem(str(error), exit_code=int(error.exit_code))


def _problem_of(result: Result) -> Problem:
    failure = result.failure
    if failure is None:
        return Problem(f"not tried: {result.blocked_by} failed")
    return problem_of_failure(failure)

"""A whole audit: build, convert, execute, evaluate."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from conrepair.backends.registry import backend
from conrepair.config.model import AuditConfig, BackendConfig, ConversionConfig, DatasetConfig, ModelConfig
from conrepair.data.feeds import DataReference
from conrepair.data.recipe import Recipe
from conrepair.data.tensor_spec import TensorSpec, merge_declared, with_declared_sizes
from conrepair.evaluate.compare import Comparison
from conrepair.evaluate.verdict import Verdict
from conrepair.frameworks.model import to_json
from conrepair.localize.result import Localization
from conrepair.pipeline.advising import advise
from conrepair.pipeline.architectures import architecture_models, audit_one_by_one, model_folders
from conrepair.pipeline.attempts import Attempts
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
from conrepair.pipeline.mending import Failed, Mender, Trial, attempt_seconds
from conrepair.pipeline.photos import PhotoRoom
from conrepair.pipeline.plan import Conversion, active_models, check_converters, plan_conversions
from conrepair.pipeline.recipes import default_recipe, recipe_from_config, sized_recipe
from conrepair.pipeline.repairing import rows_to_repair, with_advice, with_repair
from conrepair.pipeline.scheduler import Result, Scheduler, Task
from conrepair.pipeline.sources import Source, declared_inputs, framework_needs, model_of, source_task
from conrepair.repair.advice import Advice, suggestions, suggestions_for_files
from conrepair.repair.conversion.remedies import Step
from conrepair.report.result import AuditResult, Problem, Row
from conrepair.report.write import check_folder
from conrepair.runtime.errors import ConfigError, ConrepairError, UsageError
from conrepair.runtime.progress import ProgressDisplay
from conrepair.runtime.store import Entry, Store
from conrepair.runtime.workers import Failure, Workers

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
    executed = audit.execute()
    rows, pairs = evaluate(audit.config, executed, audit.datasets)
    stages, mended = audit.config.stages, audit.config.repair
    if stages.repair and mended.conversions:
        executed, rows = audit.mend(executed, rows)
    if stages.localize or (stages.repair and mended.targets):
        rows = audit.localize(executed, rows)
    if stages.repair and mended.targets:
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

    def execute(self) -> list[Executed]:
        """Run every model on every backend, one at a time so that times mean something."""
        executed: list[Executed] = []
        tasks: list[Task] = []
        for subject in self.subjects:
            executed += self._plan_executions(subject, tasks)
        self._execute(executed, tasks)
        return executed

    def _execute(self, executed: Sequence[Executed], tasks: Sequence[Task]) -> None:
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

    def mend(self, executed: Sequence[Executed], rows: Sequence[Row]) -> tuple[list[Executed], tuple[Row, ...]]:
        """Find other ways for conversions that gave nothing; what they make is judged like all else."""
        items, result = list(executed), list(rows)
        wanted = [(row, failed) for subject in self.subjects for row, failed in self._failed(subject, executed, rows)]
        attempts = Attempts(self.scheduler, attempt_seconds(self.config))
        with self.display.stage("mend", len(wanted)) as stage:
            for row, failed in wanted:
                whose = next(subject for subject in self.subjects if subject.config.name == row.model)
                mender = Mender(attempts, partial(self._try_route, whose, executed), self.config.repair.seconds)
                mending, trial = mender.mend(failed)
                place = result.index(row)
                result[place] = dataclasses.replace(row, mending=mending)
                if trial is not None:
                    new = [
                        item for item in trial.executed if item.row_name not in {other.row_name for other in items}
                    ]
                    more = [made for made in trial.rows if made.name in {item.row_name for item in new}]
                    items[place + 1 : place + 1] = new
                    result[place + 1 : place + 1] = [
                        dataclasses.replace(made, instead_of=row.conversion if made.kind == "target" else "")
                        for made in more
                    ]
                stage.advance(row.name)
        return items, tuple(result)

    def _failed(
        self, subject: _Subject, executed: Sequence[Executed], rows: Sequence[Row]
    ) -> Iterator[tuple[Row, Failed]]:
        """The routes of a model that end without one, each with its first row."""
        for chain in _chains(subject):
            row = next((row for row in rows if row.name == chain[-1].name), None)
            if row is None or row.verdict is not Verdict.UNDEPLOYABLE:
                continue
            trial = self._trial_of(subject, chain)
            if trial.failure is None:  # it was made, and doesn't run
                results = [item.result for item in executed if item.row_name == row.name and item.result is not None]
                failure = next((result.failure for result in results if result.failure is not None), None)
                trial = dataclasses.replace(trial, failure=failure, place=len(chain) - 1, ran=True)
            if trial.failure is not None and row.problem is not None and not row.problem.circumstance:
                yield row, Failed(tuple(Step(item.step, item.changed) for item in chain), trial)

    def _try_route(self, subject: _Subject, executed: Sequence[Executed], steps: Sequence[Step]) -> Trial:
        """Take a model along a route, and judge what comes out, as for a configured conversion."""
        if subject.source is None:
            raise ValueError(f"{subject.config.name} was not made")
        options = {step.converter.name: dict(step.options) for step in steps}
        wanted = ConversionConfig(via=tuple(step.converter.name for step in steps), options=options)
        config = subject.config.model_copy(update={"conversions": (wanted,)})
        chain, impossible = plan_conversions(config, subject.source.model)
        for error in impossible.values():
            return Trial(failure=Failure("refused", type(error).__name__, str(error)))
        inputs = self._inputs(subject, subject.source)
        known = self.scheduler.results
        tasks = [self._conversion_task(subject, item, inputs) for item in chain if item.name not in known]
        self.scheduler.run(tasks, side_by_side=1)
        trial = self._trial_of(subject, chain)
        if trial.failure is not None:
            return trial
        reference = subject.config.compare_with or subject.config.name
        tasks, items = [], []
        for item in chain:
            items += self._plan_conversion(subject, reference, item, tasks)
        self._execute(items, [task for task in tasks if task.name not in known])
        right = [item for item in executed if item.model == reference and item.kind == "reference"]
        rows, _ = evaluate(self.config, [*right, *items], self.datasets)
        made = rows[len(right) :]
        failures = [
            item.result.failure for item in items if item.result is not None and item.conversion == chain[-1].route
        ]
        failure = next((failure for failure in failures if failure is not None), None)
        circumstance = made[-1].verdict is not Verdict.UNDEPLOYABLE
        return dataclasses.replace(
            trial,
            executed=tuple(items),
            rows=made,
            failure=None if circumstance else failure,
            place=len(chain) - 1,
            ran=True,
        )

    def _trial_of(self, subject: _Subject, chain: Sequence[Conversion]) -> Trial:
        """How far a chain of conversions came."""
        models = [] if subject.source is None else [subject.source.model]
        for place, conversion in enumerate(chain):
            result = self.scheduler.results[conversion.name]
            if result.entry is None:
                return Trial(models=tuple(models), failure=result.failure, place=place)
            models.append(model_of(result.entry).model)
        return Trial(models=tuple(models))

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
        with self.display.stage("advise", len(places)) as stage:
            for place in places:
                result[place] = with_advice(result[place], self._advice(executed[place], rows[place], executed))
                stage.advance(executed[place].row_name)
        return tuple(result)

    def _advice(self, item: Executed, row: Row, executed: Sequence[Executed]) -> tuple[Advice, ...]:
        """Other ways to make a target with layers at fault."""
        subject, reference = (
            next(subject for subject in self.subjects if subject.config.name == name)
            for name in (item.model, item.reference)
        )
        if item.source is None or reference.source is None or row.localization is None:
            return ()
        chain = next((chain for chain in _chains(subject) if chain[-1].name == item.row_name), None)
        refusal = ""
        if chain is not None:
            steps = [Step(link.step, link.changed) for link in chain]
            guilty = {fault.step.partition(",")[0] for fault in row.localization.faults}
            ways, whose = suggestions(steps, guilty, reference.source.model), subject
        else:
            source, description = reference.source.model, item.source.description
            ways, whose = suggestions_for_files(source, item.source.model.framework, description.producer), reference
            refusal = "how the target was quantized isn't known" if description.quantized else ""

        def localize(trial: Trial) -> Localization | None:
            made = trial.executed[-1]
            return self._localized([made])[made.row_name].localization

        attempt = partial(self._try_route, whose, executed)
        return advise(ways, row.localization, attempt, localize, self.config.repair.advice_seconds, refusal)

    def _repair_task(self, item: Executed) -> Task:
        """As for a localization, with what a repair needs besides."""
        task, own = self._localization_task(item), self.config.repair.model_dump(include={"seconds", "unseen"})
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

    def _plan_executions(self, subject: _Subject, tasks: list[Task]) -> list[Executed]:
        reference = subject.config.compare_with or subject.config.name
        kind = "target" if subject.config.compare_with else "reference"
        result = [
            self._plan_execution(subject, reference, "", kind, config, subject.source, subject.problem, tasks)
            for config in self._backends(subject.source)
        ]
        for wanted, error in subject.impossible.items():
            item = Executed(
                subject.config.name, reference, wanted, self.config.backends[0].name, "target", None, _problem(error)
            )
            result.append(item)
        for conversion in subject.conversions:
            result += self._plan_conversion(subject, reference, conversion, tasks)
        return result

    def _plan_conversion(
        self, subject: _Subject, reference: str, conversion: Conversion, tasks: list[Task]
    ) -> list[Executed]:
        """The executions of what a conversion made, on every backend."""
        made, problem = self._outcome(conversion.name)
        kind = "target" if conversion.final else "intermediate"
        result = []
        for config in self._backends(made):
            item = self._plan_execution(subject, reference, conversion.route, kind, config, made, problem, tasks)
            item.asked = conversion.asked
            item.origin = subject.source.description.precision if subject.source is not None else None
            result.append(item)
        return result

    def _backends(self, source: Source | None) -> list[BackendConfig]:
        """The configured backends that run a model; its own library where none does.

        A model that wasn't made gets one row, on the first.
        """
        if source is None:
            return list(self.config.backends[:1])
        willing = [config for config in self.config.backends if backend(config.name).refuses(source.model) is None]
        return willing or [BackendConfig(name="libraries")]

    def _plan_execution(
        self,
        subject: _Subject,
        reference: str,
        conversion: str,
        kind: str,
        config: BackendConfig,
        source: Source | None,
        problem: Problem | None,
        tasks: list[Task],
    ) -> Executed:
        executed = Executed(subject.config.name, reference, conversion, config.name, kind, source, problem)
        if source is None or problem is not None:
            return executed
        name = f"{executed.row_name}@{config.name}"
        options = config.model_dump(exclude={"name"}) if config.name != "libraries" else {}
        try:
            payload = self._execution(subject, source, config.name, options)
        except ConrepairError as error:
            executed.problem = _problem(error)
            return executed
        tasks.append(self._execution_task(name, source, payload))
        executed.task = name
        if kind == "reference" and config == self._backends(source)[0]:
            second = payload | {
                "backend": "libraries",
                "options": {"second_opinion": True},
                "limit": _SECOND_OPINION_SAMPLES,
            }
            executed.second_task = f"{name}, second opinion"
            tasks.append(self._execution_task(executed.second_task, source, second))
        return executed

    def _execution_task(self, name: str, source: Source, payload: dict[str, Any]) -> Task:
        task = Task(
            name,
            "execute",
            lambda _: payload,
            needs=framework_needs(source.model.framework),
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


def _chains(subject: _Subject) -> Iterator[list[Conversion]]:
    """The configured routes of a model, conversion by conversion."""
    by_name = {item.name: item for item in subject.conversions}
    for conversion in subject.conversions:
        chain = [conversion]
        while chain[0].parent in by_name:
            chain.insert(0, by_name[chain[0].parent])
        if conversion.final:
            yield chain


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

"""From a configuration to plain values: what holds for the run, and the models that it looks at."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from conrepair.application.config.load import explain
from conrepair.application.config.model import (
    BACKEND_CONFIGS,
    AuditConfig,
    BackendConfig,
    Backends,
    ConversionConfig,
    DatasetConfig,
    LibrariesConfig,
    ModelConfig,
    OnnxRuntimeConfig,
    PluginConfig,
    SyntheticConfig,
    TvmConfig,
)
from conrepair.application.jobs.values import BuildRequest
from conrepair.application.pipeline.datasets import Dataset, folder_of_photos, synthetic, tensor_file, zoo_dataset
from conrepair.application.pipeline.plan import Goal
from conrepair.application.pipeline.recipes import default_recipe, recipe_from_config
from conrepair.application.pipeline.settings import BackendChoice, Settings, Stages
from conrepair.application.pipeline.subject import Subject
from conrepair.application.report.result import Place, Problem
from conrepair.application.verbs.metrics import metrics
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.repairs.options import RepairOptions
from conrepair.formats.backends.all_backends import BACKENDS, PLUGINS, backend
from conrepair.formats.models.factories import factory_code
from conrepair.ground.data.pictures.recipe import Recipe
from conrepair.ground.data.synthetic import SyntheticRange
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import ConfigError, ConrepairError, ModelLoadError, UsageError
from conrepair.ground.runtime.files.whole import HashedPath, sha256_of
from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair.ground.runtime.words import meant
from conrepair.ground.zoo.catalog import zoo_model
from conrepair.ground.zoo.packages import ProgressCallback
from conrepair.verdicts.evaluate.own_metrics import loaded
from conrepair.verdicts.evaluate.tolerance import Tolerance

_TORCHVISION_INPUT = {"inception_v3": 299}
_DEFAULT_IMAGE = 224


def check_converters(config: AuditConfig) -> None:
    """Refuse pinned converters and options that don't exist, before anything is done.

    Raises:
        ConfigError: naming each place in the configuration.
    """
    if problems := list(converter_problems(config)):
        raise ConfigError("\n".join(problems))


def converter_problems(config: AuditConfig) -> Iterator[str]:
    """Pinned converters and options that don't exist, each with its place in the configuration."""
    from conrepair.formats.converters.all_converters import converter  # each of which imports its own

    places = [(f"$.models[{index}]", model.conversions) for index, model in enumerate(config.models)]
    places += [(f"$.architectures[{index}]", item.conversions) for index, item in enumerate(config.architectures)]
    for place, conversions in places:
        for position, wanted in enumerate(conversions):
            if not wanted.enabled:
                continue
            for name in dict.fromkeys([*(wanted.via or ()), *wanted.options]):
                try:
                    converter(name).complete(wanted.options.get(name, {}))
                except ConfigError as error:
                    yield f"{place}.conversions[{position}]: {error}"


def check_backends(config: AuditConfig) -> None:
    """Refuse options that don't exist, before anything is done.

    Raises:
        ConfigError: naming each place in the configuration.
    """
    if problems := list(backend_problems(config)):
        raise ConfigError("\n".join(problems))


def backend_problems(config: AuditConfig) -> Iterator[str]:
    """Options of backends that don't exist, each with its place in the configuration."""
    places = {"$": config.backends} | {
        f"$.models[{i}]": model.backends or () for i, model in enumerate(config.models)
    }
    for place, backends in places.items():
        for index, item in enumerate(backends):
            try:
                check_options(item)
            except UsageError as error:
                yield f"{place}.backends[{index}]: {error}"


def check_options(config: BackendConfig) -> None:
    """Refuse options of a backend that don't exist.

    Raises:
        UsageError: naming the option.
    """
    backend(config.name).check(config.options)
    _ = BackendChoice(name=config.name, options=config.options).in_release  # says where there is none


def settings_of(config: AuditConfig, base: Path) -> Settings:
    """What holds for all models.

    Args:
        config: The audit.
        base: Folder that relative paths start from.

    Raises:
        UsageError: if a metric isn't there.
        ModelLoadError: if the metrics may not be run.
    """
    own = config.metrics
    layers = config.localize.model_dump(exclude={"when"})
    repair = config.repair.model_dump(exclude={"edits"})
    edits = None if config.repair.edits is None else frozenset(config.repair.edits)
    return Settings(
        max_drop=config.tolerance.max_drop,
        metrics=loaded(metrics("$.metrics.functions", own.functions), base, trust=own.trust),
        layers=Options(
            tolerance=Tolerance(**config.tolerance.told),
            latent_counts=layers.pop("latent"),
            **layers,
        ),
        when=config.localize.when,
        repair_targets=repair.pop("targets"),
        repair_conversions=repair.pop("conversions"),
        advice_seconds=repair.pop("advice_seconds"),
        repair=RepairOptions(**repair, edits=edits),
        stages=Stages(**config.stages.model_dump()),
        top_k=config.top_k,
        seconds=config.limits.seconds,
        compiled_seconds=config.limits.compiled_seconds,
        timed=config.limits.timed,
    )


def subjects_of(
    config: AuditConfig, models: Sequence[ModelConfig], base: Path, display: ProgressDisplay
) -> tuple[list[Subject], list[str]]:
    """The models to look at, with their datasets and recipes.

    Args:
        config: The audit.
        models: Those of it that are looked at now.
        base: Folder that relative paths start from.
        display: Shows downloads.

    Returns:
        The subjects (one whose dataset or file is unusable has a problem), and what a person should know.

    Raises:
        ConfigError: if a recipe is wrong.
        DataError: if the dataset of every model is unusable.
    """
    active = active_models(models)
    if not active:
        raise ConfigError("$.models: every model has skip_analysis, so there is nothing to do")
    found, errors = _datasets(config, active, base, display)
    subjects, notes = [], []
    for model in active:
        wanted = config.dataset_of(model)
        subject = _subject(config, model, base, display.transfer)
        subject.dataset = found.get(wanted)
        if subject.dataset is None:
            subject.problem = Problem.of(errors[wanted])
        subjects.append(subject)
    recipes: dict[str, Recipe] = {}
    notes += list(dict.fromkeys(note for dataset in found.values() for note in dataset.notes))
    for model, subject in zip(active, subjects, strict=True):
        recipe, guessed = _recipe(model, subject, recipes)
        if subject.dataset is not None and subject.dataset.kind == "photos":
            subject.recipe, subject.guessed = recipe, guessed
            recipes[model.name] = recipe
    return subjects, [*notes, *not_installed({item.name for subject in subjects for item in subject.backends})]


def active_models(models: Sequence[ModelConfig]) -> list[ModelConfig]:
    """The models to look at: `skip_analysis` leaves one out, and what is compared with it."""
    skipped = {model.name for model in models if model.skip_analysis}
    return [model for model in models if model.name not in skipped and model.compare_with not in skipped]


def _datasets(
    config: AuditConfig, models: Sequence[ModelConfig], base: Path, display: ProgressDisplay
) -> tuple[dict[DatasetConfig, Dataset], dict[DatasetConfig, ConrepairError]]:
    found: dict[DatasetConfig, Dataset] = {}
    errors: dict[DatasetConfig, ConrepairError] = {}
    for wanted in dict.fromkeys(config.dataset_of(model) for model in models):
        try:
            found[wanted] = resolve_dataset(wanted, base, progress=display.transfer)
        except ConrepairError as error:
            errors[wanted] = error
    if errors and not found:
        raise next(iter(errors.values()))
    return found, errors


def resolve_dataset(config: DatasetConfig, base: Path, *, progress: ProgressCallback | None = None) -> Dataset:
    """Find a dataset's files.

    Args:
        config: What to use.
        base: Folder that relative paths start from.
        progress: Told about downloads.

    Raises:
        DataError: if it's missing, empty or damaged.
        FetchError: if it can't be fetched.
    """
    if config.zoo is not None:
        return zoo_dataset(config.zoo, config.limit, progress)
    if config.folder is not None:
        folder, labels, classes = config.folder, config.labels, config.classes
        return folder_of_photos(
            base / folder, labels=labels, classes=classes, base=base, limit=config.limit, name=folder
        )
    if config.tensors is not None:
        return tensor_file(base / config.tensors, config.limit)
    drawn = config.synthetic or SyntheticConfig()
    given = drawn.low is not None or drawn.high is not None
    limits = SyntheticRange(drawn.seed, *drawn.ends, drawn.integer_high, given)
    return synthetic(min(drawn.samples, config.limit or drawn.samples), limits)


def _recipe(model: ModelConfig, subject: Subject, others: dict[str, Recipe]) -> tuple[Recipe, bool]:
    """A model's recipe, or that of what it's compared with; and whether nobody said it."""
    if model.recipe is not None:
        try:
            return recipe_from_config(model.recipe), False
        except ConrepairError as error:
            raise ConfigError(f"model '{model.name}', recipe: {error}") from error
    recipe, own = default_recipe(model)
    if own or subject.dataset is None or subject.dataset.kind != "photos":
        return recipe, False
    return (recipe, True) if model.compare_with not in others else (others[model.compare_with], False)


def _subject(config: AuditConfig, model: ModelConfig, base: Path, progress: ProgressCallback) -> Subject:
    """A model without what it's fed."""
    subject = Subject(
        name=model.name,
        origin=None,
        declared=_declared(model),
        compare_with=model.compare_with,
        goals=goals_of(model.conversions),
        backends=tuple(backend_choice(item, base) for item in config.backends_of(model)),
        batch_size=config.batch_size_of(model),
        trust=model.trust,
    )
    try:
        _give_origin(subject, model, base, progress)
    except ConrepairError as error:
        subject.problem = Problem.of(error)
    return subject


def goals_of(conversions: Sequence[ConversionConfig]) -> tuple[Goal, ...]:
    """What is to be tried of configured conversions: those that aren't disabled."""
    return tuple(Goal(item.to, item.via, item.options) for item in conversions if item.enabled)


def _give_origin(subject: Subject, model: ModelConfig, base: Path, progress: ProgressCallback) -> None:
    target, own = str(model.factory), base if model.zoo is None else Path.cwd()
    weights = None if model.weights is None else base / model.weights
    if model.zoo is not None:
        entry, weights = zoo_model(model.zoo, progress=progress)
        if entry.factory is None:
            subject.origin = weights
            return
        target = entry.factory
        subject.declared = (TensorSpec("", entry.input_shape or (), "float32", layout="NCHW"),)
    elif model.path is not None:
        subject.origin = base / model.path
        return
    elif weights is not None and not weights.is_file():
        raise ModelLoadError(
            f"model '{model.name}': no such weights file {weights}. Check `weights`; relative paths start "
            "at the configuration's folder."
        )
    subject.origin = BuildRequest(
        target=target,
        code=factory_code(target, own),
        kwargs=model.kwargs,
        weights=None if weights is None else HashedPath(str(weights), sha256_of(weights)),
        initialize=model.initialize,
        seed=model.seed,
    )


def _declared(config: ModelConfig) -> tuple[TensorSpec, ...]:
    """The declared inputs; torchvision's classifiers all take one RGB picture."""
    if config.inputs is None and (config.factory or "").startswith("torchvision"):
        size = _TORCHVISION_INPUT.get(str(config.factory).partition(":")[2], _DEFAULT_IMAGE)
        return (TensorSpec("", ("batch", 3, size, size), "float32", layout="NCHW"),)
    return tuple(
        TensorSpec(item.name or "", item.shape, item.dtype, layout=item.layout, high=item.high)
        for item in config.inputs or ()
    )


def backend_choice(config: BackendConfig, base: Path) -> BackendChoice:
    """A configured backend as a plain value; folders that it reads as absolute paths.

    Args:
        config: The backend.
        base: Folder that relative paths start from.
    """
    options = dict(config.options)
    for key in ("database", "built"):
        if options.get(key) is not None:
            options[key] = str(base / options[key])
    choice = BackendChoice(name=config.name, label=config.label, options=options)
    if isinstance(config, LibrariesConfig):
        return choice
    choice = dataclasses.replace(
        choice, arithmetic=config.arithmetic, optional=config.optional, converts=config.optional
    )
    if isinstance(config, TvmConfig):
        device = config.device
        where = Place.device if device is None else device.name or f"{device.host}:{device.port}"
        library = _library(config.name, config.release)
        place = Place(library, config.target, config.setting, where, config.importer or "")
        return dataclasses.replace(choice, place=place)
    release = config.release if isinstance(config, OnnxRuntimeConfig) else None
    return dataclasses.replace(choice, place=Place(_library(config.name, release), setting=config.setting))


def _library(name: str, release: str | None) -> str:
    return name if release is None else f"{name} {release}"


def named_choice(name: str, options: Mapping[str, Any], base: Path) -> BackendChoice:
    """A backend by its name.

    Args:
        name: Of the backend.
        options: As a backend of a configuration has them: target, setting, importer and so on.
        base: Folder that relative paths start from.

    Raises:
        UsageError: if there's none of that name.
        ConfigError: naming the option that isn't one, or is wrong.
    """
    if name not in BACKENDS:
        hint = meant(name, BACKENDS, f"known: {', '.join(BACKENDS)}")
        raise UsageError(f"unknown backend '{name}'{hint}")
    value = {**options, "name": name}
    try:
        config = BACKEND_CONFIGS.get(name, PluginConfig).model_validate(value)
    except ValidationError as error:
        raise ConfigError("\n".join(line.strip() for line in explain(error, value))) from error
    check_options(config)
    return dataclasses.replace(backend_choice(config, base), converts=True)


def every_choice() -> tuple[BackendChoice, ...]:
    """Every backend that's known, as "all" of a configuration names them."""
    return tuple(backend_choice(item, Path.cwd()) for item in TypeAdapter(Backends).validate_python("all"))


def not_installed(names: Collection[str]) -> Iterator[str]:
    """What a run on all backends hasn't tried, as its plug-in isn't installed: notes.

    Args:
        names: Of the backends that models run on.
    """
    for name in PLUGINS if set(names) >= {*BACKENDS} else ():
        if name not in names:
            yield f"{name} isn't tried: its plug-in isn't installed (pip install ./plugins/{name} in the repository)"

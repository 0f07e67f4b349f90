"""What a run would refuse of a configuration whose form is right: files, names and libraries that aren't there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from conrepair.application.config.load import sound_parts
from conrepair.application.config.model import AuditConfig, DatasetConfig, ModelConfig
from conrepair.application.pipeline.architectures import architecture_models
from conrepair.application.pipeline.audit import check_output
from conrepair.application.pipeline.from_config import (
    active_models,
    backend_choice,
    backend_problems,
    converter_problems,
    goals_of,
    resolve_dataset,
)
from conrepair.application.pipeline.plan import backend_options, plan_conversions, plan_preparation
from conrepair.application.pipeline.recipes import recipe_from_config
from conrepair.application.pipeline.settings import AS_IT_IS
from conrepair.formats.backends.all_backends import backend
from conrepair.formats.converters.base import Converter
from conrepair.formats.models.detect import detect_framework
from conrepair.formats.models.factory_names import factory_problem
from conrepair.formats.models.model import Model
from conrepair.ground.runtime.errors import ConrepairError
from conrepair.ground.runtime.libraries import absent, extra_of_distribution
from conrepair.ground.zoo.catalog import MODELS, check_model, check_photos

_LIBRARIES = {name: name for name in ("torch", "keras", "tensorflow", "tvm")} | {
    "tflite": "ai_edge_litert",
    "inductor": "torch",
    "xla": "tensorflow",
}
"""What frameworks and compilers are imported by, of those that an installation may lack."""


def problems_of_run(config: AuditConfig, base: Path, *, older: bool = False) -> list[str]:
    """All that a run would refuse, or could do nothing with; nothing is loaded, run or fetched to find out.

    Args:
        config: The configuration.
        base: Folder that relative paths start from.
        older: Whether it was translated, so that its places are told by names.

    Returns:
        A line for each, beginning with the place in the configuration.
    """
    active = active_models(config.models)
    wheres = {
        model.name: f"model '{model.name}'" if older else f"$.models[{place}]"
        for place, model in enumerate(config.models)
    }
    lines = [*converter_problems(config), *backend_problems(config)]
    if not (active or config.architectures or config.asked):
        lines.append("$.models: every model has skip_analysis, so there is nothing to do")
    for model in active:
        lines += _of_model(config, model, wheres[model.name], base)
    if any(config.dataset_of(model) is config.dataset for model in active):
        lines += _of_dataset(config.dataset, "$.dataset", base)
    for name, engine in config.engine.chosen.items():
        lines += _refused(f"$.engine.{name}: ", engine.check)
    for check in (
        lambda: config.architectures and architecture_models(config),
        lambda: check_output(config, base),
    ):
        lines += _refused("", check)
    lines += _refused("", lambda: lines.extend(config.part_problems(base)))
    return list(dict.fromkeys(lines))


def problems_of_parts(value: Any, base: Path) -> list[str]:
    """The same of the parts that are right by themselves, where the whole isn't.

    Args:
        value: The configuration as JSON.
        base: Folder that relative paths start from.
    """
    models, dataset = sound_parts(value)
    lines = [] if dataset is None else list(_of_dataset(dataset, "$.dataset", base))
    for place, alone in models:
        where = f"$.models[{place}]"
        own = [*converter_problems(alone), *backend_problems(alone)]
        lines += [line.replace("$.models[0]", where) for line in own]
        lines += _of_model(alone, alone.models[0], where, base)
    return list(dict.fromkeys(lines))


def _of_model(config: AuditConfig, model: ModelConfig, where: str, base: Path) -> Iterator[str]:
    """Why a model can't be had, fed, converted or run."""
    if model.path is not None:
        yield from _refused(f"{where}.path: ", lambda: detect_framework(base / str(model.path)))
    if model.zoo is not None:
        yield from _refused(f"{where}.zoo: ", lambda: check_model(str(model.zoo)))
    if model.factory is not None and (words := factory_problem(model.factory, [Path.cwd(), base])):
        yield f"{where}.factory: {words}"
    if model.weights is not None and not (base / model.weights).is_file():
        yield f"{where}.weights: no such weights file {base / model.weights}"
    if model.recipe is not None:
        yield from _refused(f"{where}.recipe: ", lambda: model.recipe and recipe_from_config(model.recipe))
    if model.dataset is not None:
        yield from _of_dataset(model.dataset, f"{where}.dataset", base)
    framework = _framework(model, base)
    if framework is not None:
        yield from _lacking(where, [framework])
        known = Model(framework, str(base / (model.path or "")), "")
        yield from _of_conversions(model, known, where)
        yield from _of_backends(config, model, known, where, base)


def _of_dataset(dataset: DatasetConfig, where: str, base: Path) -> Iterator[str]:
    if dataset.zoo is not None:
        yield from _refused(f"{where}.zoo: ", lambda: check_photos(str(dataset.zoo)))
    else:
        yield from _refused(f"{where}: ", lambda: resolve_dataset(dataset, base))


def _framework(model: ModelConfig, base: Path) -> str | None:
    """A model's, as far as it can be told without making or loading it."""
    if model.zoo is not None:
        return None if model.zoo not in MODELS else "torch" if MODELS[model.zoo].factory else "tflite"
    if model.path is None:
        return None  # what a factory makes is only known when it's called
    try:
        return detect_framework(base / model.path)
    except ConrepairError:
        return None


def _of_conversions(model: ModelConfig, known: Model, where: str) -> Iterator[str]:
    """Routes that there aren't, and tools of the others that aren't installed."""
    enabled = [place for place, wanted in enumerate(model.conversions) if wanted.enabled]
    for place, goal in zip(enabled, goals_of(model.conversions), strict=True):
        steps, impossible = plan_conversions(model.name, (goal,), known)
        at = f"{where}.conversions[{place}]"
        yield from (f"{at}: {error}" for error in impossible.values())
        yield from _lacking_tools(at, [item.step for item in steps])


def _of_backends(config: AuditConfig, model: ModelConfig, known: Model, where: str, base: Path) -> Iterator[str]:
    """Compilers that aren't installed, and ways into them that there aren't."""
    at = "$.backends" if model.backends is None else f"{where}.backends"
    for place, item in enumerate(config.backends_of(model)):
        if item.name in AS_IT_IS or backend(item.name).refuses(known) is not None:
            continue
        choice = backend_choice(item, base)
        yield from _lacking(f"{at}[{place}]", () if choice.in_release else [item.name])
        try:
            backend_options(choice)
            prepared = plan_preparation(model.name, known, choice)
        except ConrepairError as error:
            yield f"{at}[{place}]: {error}"
        else:
            yield from _lacking_tools(f"{at}[{place}]", [item.step for item in prepared])


def _lacking(where: str, names: Iterable[str]) -> Iterator[str]:
    """Libraries of frameworks and compilers that aren't installed."""
    told = (absent(_LIBRARIES[name]) for name in names if name in _LIBRARIES)
    yield from (f"{where}: {words}" for words in told if words)


def _lacking_tools(where: str, steps: Sequence[Converter]) -> Iterator[str]:
    """Libraries of converters that aren't installed; those of an environment of their own come with that."""
    for step in steps:
        for name in step.distributions if step.environment is None else ():
            extra = extra_of_distribution(name)
            module = next((key for key, value in extra.libraries.items() if value == name), "") if extra else ""
            if module and (words := absent(module)):
                yield f"{where}: {step.name}: {words}"


def _refused(where: str, check: Callable[[], object]) -> Iterator[str]:
    """Why something can't be; nothing where it can."""
    try:
        check()
    except ConrepairError as error:
        yield f"{where}{error}"

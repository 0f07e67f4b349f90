"""What a verb is asked for, with files in place of models and data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from conrepair.converters.routes import Route
from conrepair.data.named_recipes import named_recipe
from conrepair.data.recipe import Recipe
from conrepair.pipeline.datasets import dataset_for
from conrepair.pipeline.declared_inputs import input_specs
from conrepair.pipeline.pair import PairRequest, fitting_recipe
from conrepair.pipeline.subject import OnDisk, Subject
from conrepair.runtime.errors import ConfigError, UsageError
from conrepair.runtime.json_file import read_json_text, value_of
from conrepair.runtime.path_text import fitting_name, real_path
from conrepair.verbs.options import Compare, Fed, Layers, Pair

__all__ = [
    "asked_of",
    "data_of",
    "files_of",
    "names_of",
    "read_options",
    "recipe_of",
    "repair_folder",
    "slug",
    "subject_of",
]


def asked_of(options: Pair, paths: Sequence[Path], data: Path | None, *, trust: bool) -> PairRequest:
    """What is asked for: two files, those between them, and what they're fed.

    Args:
        options: Of a verb of two models.
        paths: The source's, the target's last.
        data: The file or folder of the data.
        trust: Whether code and pickles in the files may run.

    Raises:
        ConfigError: if an option's value can't be meant.
    """
    layers = isinstance(options, Layers)
    batch = {"batch_size": options.batch_size} if isinstance(options, Compare) else {}  # layers have one of their own
    return PairRequest(
        source=paths[0],
        target=paths[-1],
        between=tuple(paths[1:-1]),
        names=names_of(paths, numbered=layers),
        data=data,
        limit=options.limit,
        recipe=recipe_of(options.recipe),
        target_recipe=recipe_of(options.target_recipe),
        inputs=input_specs(options.inputs),
        samples=options.count,
        seed=options.seed,
        low=options.low,
        high=options.high,
        trust=trust,
        **batch,
    )


def files_of(options: Pair) -> PairRequest:
    """What is asked for where models and data are paths.

    Args:
        options: Of a verb of two models.
    """
    named = (options.source, *getattr(options, "between", ()), options.target)
    return asked_of(options, [real_path(text) for text in named], data_of(options), trust=options.trust)


def data_of(options: Fed) -> Path | None:
    """The file or folder of data that is a path."""
    return None if options.data is None else Path(options.data).absolute()


def subject_of(
    options: Fed, path: Path, data: Path | None, *, trust: bool, labels: str = "auto", **more: Any
) -> tuple[Subject, list[str]]:
    """The model that a verb of one looks at, and what a person should know.

    Args:
        options: Of the verb.
        path: Of the model.
        data: The file or folder of the data.
        trust: Whether code and pickles in the file may run.
        labels: Of photos.
        **more: Other fields of the subject.

    Raises:
        ConfigError: if an option's value can't be meant.
        DataError: if the data is unusable.
    """
    dataset = dataset_for(
        data,
        samples=options.count,
        seed=options.seed,
        low=options.low,
        high=options.high,
        limit=options.limit,
        labels=labels,
    )
    recipe, notes = fitting_recipe(slug(path), dataset, recipe_of(options.recipe))
    subject = Subject(
        name=slug(path),
        origin=OnDisk(path, trust),
        declared=input_specs(options.inputs),
        dataset=dataset,
        recipe=recipe,
        **more,
    )
    return subject, notes


def slug(path: Path) -> str:
    """A file's name as the name of a model, which files can be named after."""
    return fitting_name(re.sub(r"[^A-Za-z0-9._-]", "_", path.name).lstrip("._-") or "model")


def names_of(paths: Sequence[Path], *, numbered: bool) -> tuple[str, ...]:
    """Names of the models of a run by their files.

    Args:
        paths: The source first, the target last.
        numbered: Whether their places are part of them; else those of two files of one name say which is which.
    """
    names = [slug(path) for path in paths]
    if numbered:
        return tuple(fitting_name(f"{name}-{place}") for place, name in enumerate(names))
    if len(set(names)) == len(names):
        return tuple(names)
    return fitting_name(f"{names[0]}-source"), *names[1:-1], fitting_name(f"{names[-1]}-target")


def recipe_of(value: str | Path | Mapping[str, Any] | Recipe | None) -> Recipe | None:
    """A recipe as it's given: by its name, the path of a JSON file, or its fields.

    Raises:
        ConfigError: if a file can't be read, or a field isn't known.
        DataError: if there's no recipe of that name.
    """
    if value is None or isinstance(value, Recipe):
        return value
    if isinstance(value, str | Path) and not str(value).endswith(".json"):
        return named_recipe(str(value))
    from conrepair.config.load import read_recipe
    from conrepair.pipeline.recipes import recipe_from_config

    fields = _read_recipe(value) if isinstance(value, str | Path) else dict(value)
    return named_recipe(fields) if isinstance(fields, str) else recipe_from_config(read_recipe(fields))


def _read_recipe(path: str | Path) -> Any:
    try:
        return value_of(read_json_text(Path(path)))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} can't be read as a recipe: {error}. Give a recipe.json, or a name.") from error


def repair_folder(output: str | None, target: Path) -> Path:
    """Where a repaired model goes: a search of minutes isn't thrown away because nobody named a folder.

    Args:
        output: That was named.
        target: Default: a folder of its name in the current one.
    """
    return Path(f"{fitting_name(target.stem)}-repaired" if output is None else output).absolute()


def read_options(given: Mapping[str, Mapping[str, Any]] | Sequence[str], route: Route) -> dict[str, dict[str, Any]]:
    """What is given for each step of a route.

    Args:
        given: By converter, or each a text "CONVERTER.NAME=VALUE".
        route: Whose converters they must be.

    Raises:
        ConfigError: for an unknown option or a value that isn't allowed.
        UsageError: if a text is written otherwise, or names a converter that the route doesn't use.
    """
    if isinstance(given, Mapping):
        return {name: dict(values) for name, values in given.items()}
    found: dict[str, dict[str, Any]] = {step.name: {} for step in route.steps}
    steps = {step.name: step for step in route.steps}
    for text in given:
        place, equals, value = text.partition("=")
        name, dot, option = place.partition(".")
        if not (equals and dot and option):
            raise UsageError(f"--option {text}: write CONVERTER.NAME=VALUE, as in keras-tflite.quantize=int8")
        if name not in steps:
            raise UsageError(f"--option {text}: the route is {route.name}, which doesn't use {name}")
        known = steps[name].options.get(option)
        found[name][option] = known.read(value, f"--option {place}") if known is not None else value
    for step in route.steps:
        step.complete(found[step.name])
    return found

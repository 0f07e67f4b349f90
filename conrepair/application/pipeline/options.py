"""Values of options that verbs share, as the stages take them: names, recipes, backends, options of converters."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from conrepair.application.pipeline.datasets import Dataset
from conrepair.application.pipeline.settings import DEPLOYED, LIBRARIES, BackendChoice
from conrepair.application.verbs.options import Execute
from conrepair.formats.converters.routes import Route
from conrepair.ground.data.pictures.named_recipes import named_recipe
from conrepair.ground.data.pictures.recipe import Recipe
from conrepair.ground.runtime.errors import ConfigError, UsageError
from conrepair.ground.runtime.files.json_file import read_json_text, value_of
from conrepair.ground.runtime.path_text import fitting_name


def backend_of(options: Execute, own: Mapping[str, Any]) -> BackendChoice:
    """Where a model runs.

    Args:
        options: Of the verb.
        own: Options of the backend besides, which those of the verb stand before.

    Raises:
        ConfigError: naming the option that isn't one, or is wrong.
        UsageError: if there's no backend of that name, or a text is no option.
    """
    given = {**own, **_named_values(options.options)}
    for known in (LIBRARIES, DEPLOYED):
        if options.backend == known.name and not given:
            return known
    from conrepair.application.pipeline.from_config import (
        named_choice,  # the types of a configuration take a while to import
    )

    return named_choice(options.backend, given, Path.cwd())


def _named_values(given: Mapping[str, Any] | Sequence[str]) -> Mapping[str, Any]:
    """Options by name, or of texts "NAME=VALUE", whose values are JSON or just texts."""
    if isinstance(given, Mapping):
        return given
    found: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (equals and name):
            raise UsageError(f"--option {text}: write NAME=VALUE, as in optimization=basic")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


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
    from conrepair.application.config.load import read_recipe
    from conrepair.application.pipeline.recipes import recipe_from_config

    fields = _read_recipe(value) if isinstance(value, str | Path) else dict(value)
    return named_recipe(fields) if isinstance(fields, str) else recipe_from_config(read_recipe(fields))


def _read_recipe(path: str | Path) -> Any:
    try:
        return value_of(read_json_text(Path(path)))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} can't be read as a recipe: {error}. Give a recipe.json, or a name.") from error


def fitting_recipe(name: str, dataset: Dataset, recipe: Recipe | None) -> tuple[Recipe | None, list[str]]:
    """How a dataset's samples become tensors, and a note where nobody said it.

    Args:
        name: Of the model.
        dataset: That it runs on.
        recipe: That was given.

    Returns:
        None where samples are tensors already.
    """
    if dataset.kind != "photos":
        return None, []
    if recipe is not None:
        return recipe, []
    words = "no recipe (preprocessing) is given; photos are given as raw pixels 0..255, so accuracy means little"
    return named_recipe("raw"), [f"{name}: {words}"]


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

"""What a verb is asked for, with files in place of models and data: from Python or from a shell."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from conrepair.converters.routes import Route, find_route, pinned_route
from conrepair.data.pictures.named_recipes import RECIPES, named_recipe
from conrepair.data.pictures.recipe import Recipe
from conrepair.frameworks.detect import detect_framework
from conrepair.frameworks.identity import model_sha256
from conrepair.frameworks.model import Model
from conrepair.intake.data import data_file
from conrepair.intake.models import model_file
from conrepair.pipeline.datasets import dataset_for, is_array_file
from conrepair.pipeline.declared_inputs import input_specs
from conrepair.pipeline.plan import Goal
from conrepair.pipeline.settings import DEPLOYED, LIBRARIES, BackendChoice
from conrepair.pipeline.subject import OnDisk, Subject
from conrepair.pipeline.verbs import PairRequest, fitting_recipe
from conrepair.runtime.errors import ConfigError, UsageError
from conrepair.runtime.json_file import read_json_text, value_of
from conrepair.runtime.path_text import fitting_name
from conrepair.verbs.options import Compare, Convert, Execute, Fed, Inputs, Layers, Pair


def asked_of(options: Pair, given: Path = Path()) -> PairRequest:
    """What is asked for of two models; what is an object is written as a file.

    Args:
        options: Of a verb of two models.
        given: Folder for objects; a shell has none.

    Raises:
        ConrepairError: if an option's value can't be meant, or an object can't be written.
    """
    declared, data = input_specs(options.inputs), data_file(options.data, given, limit=options.count)
    between = getattr(options, "between", ())
    called = ["source", *(f"between[{place}]" for place in range(len(between))), "target"]
    written = [
        model_file(model, given / str(place), inputs=declared, data=data, name=name, recorded=True)
        for place, (name, model) in enumerate(zip(called, (options.source, *between, options.target), strict=True))
    ]
    paths = [path for path, _ in written]
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
        inputs=declared,
        samples=options.count,
        seed=options.seed,
        low=options.low,
        high=options.high,
        trust=options.trust or all(own for _, own in written),
        **batch,
    )


def execution_of(options: Execute, backend: BackendChoice, given: Path = Path()) -> tuple[Subject, list[str]]:
    """The model to run, and what a person should know.

    Args:
        options: Of the verb.
        backend: Where it runs.
        given: As for `asked_of`.

    Raises:
        ConrepairError: if an option's value can't be meant, or the data is unusable.
    """
    return _subject(options, *_files(options, given), backends=(backend,), batch_size=options.batch_size)


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
    from conrepair.pipeline.from_config import named_choice  # the types of a configuration take a while to import

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


def inputs_of(options: Inputs, given: Path = Path()) -> tuple[Subject, list[str]]:
    """The model whose inputs are wanted, and what a person should know.

    Args:
        options: Of the verb.
        given: As for `asked_of`.

    Raises:
        ConrepairError: if an option's value can't be meant, or the data is unusable.
    """
    return _subject(options, *_files(options, given), labels="none")


def conversion_of(options: Convert, given: Path = Path()) -> tuple[Subject, list[str]]:
    """The model to convert, with its goal, and what a person should know.

    Args:
        options: Of the verb.
        given: As for `asked_of`.

    Raises:
        ConrepairError: if there's no route, an option's value can't be meant, or the data is unusable.
    """
    path, trust, data = _files(options, given)
    framework, via = detect_framework(path), options.via
    if options.to == framework and not via:
        raise UsageError(f"{path} is {framework} already. For a round trip name the converters (via).")
    known = Model(framework, str(path), model_sha256(path), inputs=input_specs(options.inputs))
    route = pinned_route(via, framework, options.to) if via else find_route(framework, options.to, model=known)
    chosen = read_options(options.options, route)
    _check_calibration(route, chosen, data, recipe=options.recipe is not None)
    goal = Goal(via=tuple(step.name for step in route.steps), options=chosen)
    return _subject(options, path, trust, data, labels="none", goals=(goal,))


def _check_calibration(
    route: Route, options: Mapping[str, Mapping[str, Any]], data: Path | None, *, recipe: bool
) -> None:
    """Refuse to calibrate with what wasn't given.

    Args:
        route: The converters.
        options: By converter.
        data: What there is.
        recipe: Whether there's one.

    Raises:
        UsageError: if there's no data, or photos without a recipe.
    """
    for step in route.steps:
        chosen = step.complete(options.get(step.name, {}))
        if not step.calibrates(chosen):
            continue
        if data is None:
            asked = f" with quantize={chosen['quantize']}" if "quantize" in chosen else ""
            raise UsageError(
                f"{step.name}{asked} calibrates with data, and none is given. Give --data: a folder of photos "
                "(with --recipe), or .npz/.npy."
            )
        if not is_array_file(data) and not recipe:
            raise UsageError(
                f"{step.name} calibrates with photos, and what they are before they enter the model decides the "
                f"ranges. Give --recipe: {', '.join(RECIPES)}."
            )


def _files(options: Convert | Execute | Inputs, given: Path) -> tuple[Path, bool, Path | None]:
    """The model, whether it's trusted, and the data."""
    data = data_file(options.data, given, limit=options.count)
    path, own = model_file(options.model, given / "0", inputs=input_specs(options.inputs), data=data)
    detect_framework(path)
    return path, options.trust or own, data


def _subject(
    options: Fed, path: Path, trust: bool, data: Path | None, labels: str = "auto", **more: Any
) -> tuple[Subject, list[str]]:
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

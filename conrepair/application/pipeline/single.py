"""Convert, run or feed one model: what Python and the command line share."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from conrepair.application.engine.session import Session
from conrepair.application.pipeline.datasets import dataset_for
from conrepair.application.pipeline.declared_inputs import input_specs
from conrepair.application.pipeline.plan import Goal
from conrepair.application.pipeline.recipes import fitting_recipe, recipe_of
from conrepair.application.pipeline.run import Request, run_models, run_state
from conrepair.application.pipeline.settings import DEPLOYED, LIBRARIES, BackendChoice, Stages, verb_settings
from conrepair.application.pipeline.stages.preparation import build, draw
from conrepair.application.pipeline.subject import Subject, slug
from conrepair.application.report.audit_folder import write_audit
from conrepair.application.report.folder import check_folder
from conrepair.application.report.repair.summary import conversion_lines
from conrepair.application.report.result import AuditResult, Row
from conrepair.application.report.results import Converted, Executed
from conrepair.application.verbs.options import Convert, Execute, Inputs, Placed
from conrepair.formats.converters.routes import Route, find_route, pinned_route
from conrepair.formats.models.detect import detect_framework
from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import Model
from conrepair.ground.data.feeds import Feeds, open_feeds
from conrepair.ground.data.stored_values import quantized
from conrepair.ground.data.tensor_spec import TensorSpec, numpy_dtype
from conrepair.ground.intake.data import data_file
from conrepair.ground.intake.models import model_file
from conrepair.ground.runtime.errors import ConfigError, ConrepairError, UsageError
from conrepair.ground.runtime.files.outputs import Output
from conrepair.verdicts.evaluate.fitted_grid import grid_in_words


def backend_of(options: Placed, own: Mapping[str, Any] = MappingProxyType({})) -> BackendChoice:
    """Where a model runs.

    Args:
        options: Of the verb.
        own: Options of the backend besides, which those of the verb stand before.

    Raises:
        ConfigError: naming the option that isn't one, or is wrong.
        UsageError: if there's no backend of that name.
    """
    given = {**own, **dict(cast(Mapping[str, Any], options.options))}  # as a verb reads them, from texts, too
    for known in (LIBRARIES, DEPLOYED):
        if options.backend == known.name and not given:
            return known
    # The types of a configuration take a while to import.
    from conrepair.application.pipeline.from_config import named_choice

    try:
        return named_choice(options.backend, given, Path.cwd())
    except ConfigError as error:  # which calls an option by its place in a configuration
        raise ConfigError(str(error).replace("$.", f"backend {options.backend}, option ", 1)) from error


def request_of(
    options: Convert | Execute | Inputs, given: Path = Path(), backends: Sequence[BackendChoice] = (LIBRARIES,)
) -> Request:
    """The model that is converted, run, or whose inputs are wanted.

    Args:
        options: Of the verb.
        given: Folder for objects; a shell has none.
        backends: Where it runs.

    Raises:
        ConrepairError: if there's no route, an option's value can't be meant, or the data is unusable.
    """
    data, declared = data_file(options.data, given, limit=options.count), input_specs(options.inputs)
    path, own = model_file(options.model, given / "0", inputs=declared, data=data)
    framework = detect_framework(path)
    goals, calibrated = tuple[Goal, ...](), ""
    if isinstance(options, Convert):
        goal, calibrated = _goal(options, path, framework, declared, data)
        goals = (goal,)
    dataset = dataset_for(data, options, samples=options.count, models=(path,))
    recipe = recipe_of(options.recipe)
    subject = Subject(
        name=slug(path),
        origin=path,
        trust=options.trust or own,
        declared=declared,
        goals=goals,
        backends=tuple(backends),
        batch_size=options.batch_size if isinstance(options, Execute) else Subject.batch_size,
        dataset=dataset,
        recipe=fitting_recipe(dataset, recipe),
        guessed=recipe is None,
        calibrated=calibrated,
    )
    settings, notes = verb_settings(options), dataset.notes
    return Request(paths=(path,), data=data, subjects=(subject,), settings=settings, notes=notes)


def _goal(
    options: Convert, path: Path, framework: str, declared: tuple[TensorSpec, ...], data: Path | None
) -> tuple[Goal, str]:
    """What a model is converted to, and the converter that calibrates with its data; "" where none does."""
    via = options.via
    if options.to == framework and not via:
        raise UsageError(f"{path} is {framework} already. To convert it there and back, name converters (--via).")
    known = Model(framework, str(path), model_sha256(path), inputs=declared)
    route = pinned_route(via, framework, options.to) if via else find_route(framework, options.to, model=known)
    chosen = _options(options.options, route)
    return Goal(via=tuple(step.name for step in route.steps), options=chosen), _calibrating(route, chosen, data)


def inputs_file(path: Path) -> Output:
    """The file for a model's inputs, which appears whole and replaces nothing else.

    Raises:
        UsageError: if it isn't called .npz.
    """
    if path.suffix != ".npz":
        raise UsageError(f"{path}: inputs are written as .npz (arrays by name). Name the file so.")
    return Output(path, "inputs", beside=True)


def model_inputs(request: Request, session: Session) -> tuple[Feeds, list[str]]:
    """Draw a model's inputs as a comparison does, or prepare its data.

    Args:
        request: The model, with its dataset and recipe.
        session: Where.

    Returns:
        Arrays by the model's input, samples first, in the types that it takes; and what a person should know.

    Raises:
        ConrepairError: if the model can't be loaded, or the data doesn't fit it.
    """
    with run_state(request, session) as state:
        build(state)
        draw(state)
        own = state.subjects[0]
        if own.source is None:
            if own.problem is None:
                raise ValueError(f"{own.name} wasn't loaded, and nothing says why")
            raise own.problem.as_error()
        for error in state.photos.wait().values():
            raise error
        data, recipe = state.data_for(own, own.source)
        inputs = own.inputs(own.source)
        reader = open_feeds(data, inputs, recipe)
        arrays = reader.read(0, reader.count)
        for spec in inputs:
            if spec.quantization is not None and arrays[spec.name].dtype.kind == "f":
                arrays[spec.name] = quantized(arrays[spec.name], spec.quantization, numpy_dtype(spec.dtype))
                words = f"{spec.dtype}, as the model takes it, quantized by {grid_in_words(spec.quantization)}"
                state.notes.append(f"{spec.name} is {words}")
        return arrays, [*state.notes, *reader.matching.guesses]


def _options(given: Mapping[str, Mapping[str, Any]] | Sequence[str], route: Route) -> dict[str, dict[str, Any]]:
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
            raise UsageError(f"{text!r} of --option: write CONVERTER.NAME=VALUE, as in keras-tflite.quantize=int8")
        if name not in steps:
            raise UsageError(f"{text!r} of --option: the conversion is by {route.name}, not by {name}")
        known = steps[name].options.get(option)
        found[name][option] = known.read(value, f"--option {place}") if known is not None else value
    for step in route.steps:
        step.complete(found[step.name])
    return found


def _calibrating(route: Route, options: Mapping[str, Mapping[str, Any]], data: Path | None) -> str:
    """The converter that calibrates with data; "" where none does.

    Args:
        route: The converters.
        options: By converter.
        data: What there is.

    Raises:
        UsageError: if there's no data.
    """
    for step in route.steps:
        chosen = step.complete(options.get(step.name, {}))
        if not step.calibrates(chosen):
            continue
        if data is None:
            asked = f" with quantize={chosen['quantize']}" if "quantize" in chosen else ""
            raise UsageError(
                f"{step.name}{asked} needs data to calibrate with. Give --data: a folder of photos (with --recipe) "
                "or .npz/.npy."
            )
        return step.name
    return ""


def convert_model(request: Request, session: Session) -> Converted:
    """Convert a model to its goal, and compare the result with it where that's wanted.

    Args:
        request: The model, with one goal.
        session: Where.

    Raises:
        ConrepairError: if nothing came of it: the first problem on the way.
    """
    run = run_models(request, session, "convert")
    targets = [row for row in run.rows if row.kind == "target"]
    row = next((row for row in targets if row.instead_of), targets[0] if targets else None)
    if row is None or row.ran.artifact is None:
        raise _failure(run.rows)
    return Converted(model=Path(row.ran.artifact.path), run=run, place=run.rows.index(row))


def execute_model(request: Request, session: Session) -> Executed:
    """Run a model on its backend; what a compiler or an optimizer made is compared with the model as it is written.

    Args:
        request: The model, with one backend.
        session: Where.

    Raises:
        ConrepairError: if it can't be run.
    """
    run = run_models(request, session, "execute")
    row = run.rows[-1]
    if row.ran.run is None:
        if row.problem is None:
            raise ValueError("a row that didn't run has a problem")
        raise row.problem.as_error(row.backend)
    return Executed(run=run)


def execute_everywhere(request: Request, session: Session, *, folder: Path | None = None) -> AuditResult:
    """Run a model on several backends, compare them, and name the layers that one computes wrongly: an audit of it.

    Args:
        request: The model, with its backends.
        session: Where.
        folder: For the report, written where it's given.

    Raises:
        UsageError: if the folder holds something else.
    """
    if folder is not None:
        check_folder(folder, "audit", request.inputs)
    request = dataclasses.replace(
        request, settings=dataclasses.replace(request.settings, stages=Stages(localize=True))
    )
    run = run_models(request, session, "audit", name=request.subjects[0].name, folder=folder)
    return run if folder is None else write_audit(run, session.store.root)


def _failure(rows: Sequence[Row]) -> ConrepairError:
    """The first problem on the way, with its exit code."""
    first, problem = next((row, row.problem) for row in rows if row.ran.artifact is None and row.problem is not None)
    repaired = [row.mending for row in rows if row.mending is not None]
    told = [line for done in repaired for line in conversion_lines(done)]
    words = "\n".join([problem.explanation, *told]).strip()
    return dataclasses.replace(problem, explanation=words).as_error(first.conversion)

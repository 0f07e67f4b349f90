"""Convert, run or feed one model: what Python and the command line share."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from conrepair.application.engine.session import Session
from conrepair.application.pipeline.datasets import dataset_for, is_array_file
from conrepair.application.pipeline.declared_inputs import input_specs
from conrepair.application.pipeline.options import fitting_recipe, read_options, recipe_of, slug
from conrepair.application.pipeline.plan import Goal
from conrepair.application.pipeline.run import run_models, run_state
from conrepair.application.pipeline.settings import BackendChoice, Settings
from conrepair.application.pipeline.stages.preparation import build, draw
from conrepair.application.pipeline.subject import Subject
from conrepair.application.report.repair.summary import conversion_lines
from conrepair.application.report.result import Row
from conrepair.application.report.results import Converted, Executed
from conrepair.application.verbs.options import Build, Convert, Execute, Fed, Inputs
from conrepair.formats.converters.routes import Route, find_route, pinned_route
from conrepair.formats.models.detect import detect_framework
from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import Model
from conrepair.ground.data.feeds import Feeds, open_feeds
from conrepair.ground.data.pictures.named_recipes import RECIPES
from conrepair.ground.intake.data import data_file, write_arrays
from conrepair.ground.intake.models import model_file
from conrepair.ground.runtime.errors import ConrepairError, UsageError
from conrepair.ground.runtime.files.outputs import Output


def model_inputs(
    subject: Subject, session: Session, notes: Sequence[str] = (), *, timeout: float = 600.0
) -> tuple[Feeds, list[str]]:
    """Draw a model's inputs as a comparison does, or prepare its data.

    Args:
        subject: The model, with its dataset and recipe.
        session: Where.
        notes: What a person should know already.
        timeout: Seconds for each step.

    Returns:
        Arrays by the model's input, samples first, in the types that it takes; and what a person should know.

    Raises:
        ConrepairError: if the model can't be loaded, or the data doesn't fit it.
    """
    with run_state(session, Settings(seconds=timeout), [subject], notes) as state:
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
        reader = open_feeds(data, own.inputs(own.source), recipe)
        return reader.read(0, reader.count), state.notes


def check_inputs_file(path: Path, *, force: bool, data: str | Path | None = None) -> None:
    """Make sure that writing a model's inputs replaces nothing else.

    Args:
        path: For them.
        force: Whether earlier ones are replaced.
        data: That they're made of.

    Raises:
        UsageError: if something is there, or it isn't called .npz.
    """
    if path.suffix != ".npz":
        raise UsageError(f"{path} would hold arrays by name: call it .npz.")
    _output(path).check(force=force, inputs=[] if data is None else [data])


def save_inputs(arrays: Feeds, path: Path) -> None:
    """Write a model's inputs; the file appears whole.

    Args:
        arrays: By input, samples first.
        path: An .npz, from `check_inputs_file`.

    Raises:
        StorageError: if it can't be written.
    """
    with _output(path).write() as temporary:
        write_arrays(temporary, arrays)


def _output(path: Path) -> Output:
    return Output(path, "inputs", beside=True)


def execution_of(options: Execute, backend: BackendChoice, given: Path = Path()) -> tuple[Subject, list[str]]:
    """The model to run, and what a person should know.

    Args:
        options: Of the verb.
        backend: Where it runs.
        given: Folder for objects; a shell has none.

    Raises:
        ConrepairError: if an option's value can't be meant, or the data is unusable.
    """
    return _subject(options, *_files(options, given), backends=(backend,), batch_size=options.batch_size)


def inputs_of(options: Inputs, given: Path = Path()) -> tuple[Subject, list[str]]:
    """The model whose inputs are wanted, and what a person should know.

    Args:
        options: Of the verb.
        given: Folder for objects; a shell has none.

    Raises:
        ConrepairError: if an option's value can't be meant, or the data is unusable.
    """
    return _subject(options, *_files(options, given), labels="none")


def conversion_of(options: Convert, given: Path = Path()) -> tuple[Subject, list[str]]:
    """The model to convert, with its goal, and what a person should know.

    Args:
        options: Of the verb.
        given: Folder for objects; a shell has none.

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


def build_of(options: Build, given: Path = Path()) -> Subject:
    """The model to compile.

    Args:
        options: Of the verb.
        given: Folder for objects; a shell has none.

    Raises:
        ConrepairError: if there's no such file, or an option's value can't be meant.
    """
    declared = input_specs(options.inputs)
    path, own = model_file(options.model, given, inputs=declared)
    detect_framework(path)
    return Subject(name=slug(path), origin=path, trust=options.trust or own, declared=declared)


def _files(options: Convert | Execute | Inputs, given: Path) -> tuple[Path, bool, Path | None]:
    """The model, whether it's trusted, and the data."""
    data = data_file(options.data, given, limit=options.count)
    path, own = model_file(options.model, given / "0", inputs=input_specs(options.inputs), data=data)
    detect_framework(path)
    return path, options.trust or own, data


def _subject(
    options: Fed, path: Path, trust: bool, data: Path | None, labels: str = "auto", **more: Any
) -> tuple[Subject, list[str]]:
    dataset = dataset_for(data, options, samples=options.count, labels=labels)
    recipe, notes = fitting_recipe(slug(path), dataset, recipe_of(options.recipe))
    subject = Subject(
        name=slug(path),
        origin=path,
        trust=trust,
        declared=input_specs(options.inputs),
        dataset=dataset,
        recipe=recipe,
        **more,
    )
    return subject, notes


def convert_model(subject: Subject, settings: Settings, session: Session, notes: Sequence[str] = ()) -> Converted:
    """Convert a model to its goal, and compare the result with it where that's wanted.

    Args:
        subject: With one goal.
        settings: From `conversion_settings`.
        session: Where.
        notes: What a person should know already.

    Raises:
        ConrepairError: if nothing came of it: the first problem on the way.
    """
    run = run_models(session, settings, [subject], notes=notes, kind="convert")
    targets = [row for row in run.rows if row.kind == "target"]
    row = next((row for row in targets if row.instead_of), targets[0] if targets else None)
    if row is None or row.ran.artifact is None:
        raise _failure(run.rows)
    return Converted(model=Path(row.ran.artifact.path), run=run, place=run.rows.index(row))


def execute_model(
    subject: Subject, session: Session, notes: Sequence[str] = (), *, timeout: float = 600.0, steps: int | None = None
) -> Executed:
    """Run a model on its backend; what a compiler or an optimizer made is compared with the model as it is written.

    Args:
        subject: With one backend.
        session: Where.
        notes: What a person should know already.
        timeout: Seconds for each step.
        steps: As in `Settings`.

    Raises:
        ConrepairError: if it can't be run.
    """
    settings = Settings(seconds=timeout, steps=steps)
    run = run_models(session, settings, [subject], notes=notes, kind="execute")
    row = run.rows[-1]
    if row.ran.run is None:
        if row.problem is None:
            raise ValueError("a row that didn't run has a problem")
        raise row.problem.as_error(row.backend)
    return Executed(run=run)


def _failure(rows: Sequence[Row]) -> ConrepairError:
    """The first problem on the way, with its exit code."""
    first, problem = next((row, row.problem) for row in rows if row.ran.artifact is None and row.problem is not None)
    repaired = [row.mending for row in rows if row.mending is not None]
    told = [line for done in repaired for line in conversion_lines(done)]
    words = "\n".join([problem.explanation, *told]).strip()
    return dataclasses.replace(problem, explanation=words).as_error(first.conversion)

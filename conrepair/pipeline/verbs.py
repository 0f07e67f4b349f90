"""Compare, localize and repair two files: what Python and the command line share."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from conrepair.converters.routes import Route
from conrepair.data.pictures.named_recipes import RECIPES
from conrepair.engine.session import Session
from conrepair.frameworks.detect import detect_framework
from conrepair.frameworks.formats import RECORDED
from conrepair.frameworks.identity import model_sha256
from conrepair.localization.result import Localization
from conrepair.localization.steps import attribute_steps
from conrepair.pipeline.datasets import is_array_file
from conrepair.pipeline.evaluation import Looked
from conrepair.pipeline.pair import PairRequest, is_build, look_into, subjects_of_pair
from conrepair.pipeline.run import data_in_words, run_models
from conrepair.pipeline.settings import Settings
from conrepair.pipeline.subject import Subject
from conrepair.repairs.result import with_form
from conrepair.report.encode import encode
from conrepair.report.folder import check_folder
from conrepair.report.localization.about import About
from conrepair.report.repair.summary import conversion_lines
from conrepair.report.result import LocalizedStep, Row
from conrepair.report.results import Compared, Converted, Executed, Localized, Repaired
from conrepair.runtime.errors import ConrepairError, ExitCode, UsageError
from conrepair.runtime.interruption import ended_gently
from conrepair.runtime.journal import end_early
from conrepair.runtime.path_text import fitting_name
from conrepair.runtime.store import journals

__all__ = ["check_calibration", "compare_pair", "convert_model", "execute_model", "localize_pair", "repair_pair"]

_WELL_FORMED = "well-formed"  # folder of a copy of the target


def compare_pair(asked: PairRequest, settings: Settings, session: Session, *, folder: Path | None = None) -> Compared:
    """Run both models, and judge the target's answers.

    Args:
        asked: The files.
        settings: Tolerances.
        session: Where.
        folder: Where the report will be.

    Raises:
        ConrepairError: if a file or the data is unusable.
    """
    asked.check()
    subjects, notes = subjects_of_pair(asked)
    name = fitting_name(f"compare-{asked.names[0]}-{asked.names[-1]}")
    if folder is not None:
        inputs = [path for path in (asked.source, asked.target, asked.data) if path is not None]
        check_folder(folder / name, "compare", inputs)
    looked, told = run_models(
        session,
        settings,
        subjects,
        name=name,
        folder=folder and folder / name,
        asked=encode(asked, text=str),
        notes=notes,
        kind="compare",
    )
    row, problems = looked.rows[-1], [row.problem for row in looked.rows if row.problem is not None]
    return Compared(
        verdict=row.verdict,
        reason=row.reason,
        faults=() if row.localized.result is None else row.localized.result.faults,
        problem=next(iter(problems), None),
        exit_code=max(row.exit_code for row in looked.rows),
        whole=partial(told, [looked]),
        store=session.store.root,
    )


def localize_pair(asked: PairRequest, settings: Settings, session: Session) -> Localized:
    """Name the layers in which the target stops being its source.

    Args:
        asked: The files.
        settings: With the stage that localizes.
        session: Where.

    Raises:
        ConrepairError: if a file can't be loaded or looked into.
    """
    looked, found, told = look_into(asked, settings, session)
    _, *middle, row = looked.rows
    if asked.between:
        steps = [(path.name, item.localized.result) for path, item in zip(asked.between, middle, strict=True)]
        found = attribute_steps(found, steps, asked.target.name)
    compared = row.localized.steps[-1].compared
    if asked.compiled:  # the run has a copy of it
        compared = dataclasses.replace(compared, build=str(asked.target))
    row = dataclasses.replace(row, localized=row.localized.with_own(LocalizedStep(compared, found)))
    looked = dataclasses.replace(looked, rows=(*looked.rows[:-1], row))
    return Localized(localization=found, about=_about(row, looked), whole=partial(told, [looked]))


def _about(row: Row, looked: Looked) -> About:
    """The circumstances of a target's localization."""
    compared, subjects = row.localized.steps[-1].compared, looked.subjects
    return About(source=compared.source, target=compared.target, data=data_in_words(subjects[0], subjects))


def repair_pair(asked: PairRequest, settings: Settings, session: Session) -> Repaired:
    """Repair the target in its own format; the first Ctrl-C ends the search with the best that was verified.

    Args:
        asked: The files.
        settings: With the stage that repairs.
        session: Where.

    Raises:
        ConrepairError: if a file can't be loaded or looked into.
    """
    for path in (asked.source, asked.target):
        if not is_build(path) and detect_framework(path, recorded=True) == RECORDED:
            raise UsageError(
                f"{path} holds outputs that were computed elsewhere, and a repair edits and runs models. `localize` "
                "takes them; for a repair give the files."
            )
    for journal in journals(session.store.own):
        end_early(journal, wanted=False)
    with ended_gently(lambda: _end_searches(session.store.own)):
        try:
            looked, found, told = look_into(asked, settings, session)
        except ConrepairError as error:
            if asked.compiled or error.exit_code != ExitCode.MODEL_LOAD:
                raise
            from conrepair.frameworks.onnx_files.well_formed import write_well_formed  # imports onnx

            copy = session.room / _WELL_FORMED / f"repaired{asked.target.suffix}"
            changes = write_well_formed(asked.target, copy)
            if not changes:
                raise
            looked, found, told = look_into(dataclasses.replace(asked, target=copy), settings, session)
            looked = _as_it_came(looked, found, changes, asked.target)
    row, whole = looked.rows[-1], partial(told, [looked])
    return Repaired(before=found, about=_about(row, looked), repaired=row.repaired, whole=whole)


def _as_it_came(looked: Looked, found: Localization, changes: tuple[str, ...], target: Path) -> Looked:
    """What was seen of a copy that libraries take, as what was seen of the target."""
    row = looked.rows[-1]
    compared = row.localized.steps[-1].compared
    model = dataclasses.replace(compared.target, path=str(target), sha256=model_sha256(target))
    repaired = row.repaired
    if repaired.problem is None:
        done = with_form(changes, compared.target, found, repaired.result)
        repaired = dataclasses.replace(repaired, result=done)
    step = LocalizedStep(dataclasses.replace(compared, target=model), found)
    row = dataclasses.replace(row, localized=row.localized.with_own(step), repaired=repaired)
    return dataclasses.replace(looked, rows=(*looked.rows[:-1], row))


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
    looked, told = run_models(session, settings, [subject], notes=notes, kind="convert")
    targets = [row for row in looked.rows if row.kind == "target"]
    row = next((row for row in targets if row.instead_of), targets[0] if targets else None)
    if row is None or row.ran.artifact is None:
        raise _failure(looked.rows)
    return Converted(
        model=Path(row.ran.artifact.path),
        route=row.conversion,
        verdict=row.verdict,
        reason=row.reason,
        exit_code=row.exit_code,
        whole=partial(told, [looked]),
        place=looked.rows.index(row),
    )


def execute_model(
    subject: Subject,
    session: Session,
    notes: Sequence[str] = (),
    *,
    timeout: float = 600.0,
    steps: int | None = None,
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
    looked, told = run_models(session, settings, [subject], notes=notes, kind="execute")
    row = looked.rows[-1]
    if row.ran.run is None:
        if row.problem is None:
            raise ValueError("a row that didn't run has a problem")
        raise row.problem.as_error(row.backend)
    return Executed(
        ran=row.ran,
        backend=row.backend,
        verdict=row.verdict,
        exit_code=row.exit_code,
        whole=partial(told, [looked]),
    )


def check_calibration(
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


def _failure(rows: Sequence[Row]) -> ConrepairError:
    """The first problem on the way, with its exit code."""
    first, problem = next((row, row.problem) for row in rows if row.ran.artifact is None and row.problem is not None)
    repaired = [row.mending for row in rows if row.mending is not None]
    told = [line for done in repaired for line in conversion_lines(done)]
    words = "\n".join([problem.explanation, *told]).strip()
    return dataclasses.replace(problem, explanation=words).as_error(first.conversion)


def _end_searches(store: Path) -> bool:
    """Let them end with what they have; whether there are any."""
    for journal in (found := journals(store)):
        end_early(journal)
    if found:
        sys.stderr.write("conrepair: the best that was verified is being written; Ctrl-C again stops at once\n")
    return bool(found)

"""Compare, localize and repair two files: what Python and the command line share."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from conrepair.application.engine.session import Session
from conrepair.application.pipeline.datasets import dataset_for, fewer_in_words, fitting_count
from conrepair.application.pipeline.declared_inputs import input_specs
from conrepair.application.pipeline.options import fitting_recipe, names_of, recipe_of
from conrepair.application.pipeline.run import run_models
from conrepair.application.pipeline.settings import LIBRARIES, Settings, answer_settings, layer_settings
from conrepair.application.pipeline.subject import Subject
from conrepair.application.report.folder import check_folder
from conrepair.application.report.result import AuditResult, LocalizedStep, RunKind
from conrepair.application.report.results import Compared, Localized, Repaired
from conrepair.application.verbs.options import Compare, Localize, Repair
from conrepair.diagnosis.localization.result import attribute_steps
from conrepair.diagnosis.repairs.result import with_form
from conrepair.formats.models.detect import detect_framework
from conrepair.formats.models.formats import RECORDED
from conrepair.formats.models.identity import model_sha256
from conrepair.formats.tvm.options import BUILD
from conrepair.ground.intake.data import data_file
from conrepair.ground.intake.models import model_file
from conrepair.ground.runtime.errors import ConrepairError, ExitCode, UsageError
from conrepair.ground.runtime.files.journal import end_early
from conrepair.ground.runtime.files.store import journals
from conrepair.ground.runtime.path_text import fitting_name
from conrepair.ground.runtime.processes.deadline import ended_gently
from conrepair.ground.runtime.typed import plain

_WELL_FORMED = "well-formed"  # folder of a copy of the target
_AT_ONCE = 16  # samples, where layers have another number


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two files, models on the way, what they're fed, and what's done with them.

    Attributes:
        source: The model that is right.
        target: Its conversion, or a folder that `build` wrote.
        between: Models on the way, in order.
        data: File or folder of what they're fed; None where that's drawn.
        subjects: The models that a run looks at, the source first.
        settings: Which stages, and how.
        asked: What was asked for, as JSON, for the record.
        notes: What a person should know already.
    """

    source: Path
    target: Path
    between: tuple[Path, ...]
    data: Path | None
    subjects: tuple[Subject, ...]
    settings: Settings
    asked: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    @property
    def compiled(self) -> bool:
        """Whether the target is a build."""
        return is_build(self.target)

    @property
    def inputs(self) -> tuple[Path, ...]:
        """What is read, and never written to."""
        return self.source, *self.between, self.target, *(() if self.data is None else (self.data,))


def is_build(path: Path) -> bool:
    """Whether a folder is a build of TVM."""
    return (path / BUILD).is_file()


def pair_of(options: Compare | Localize | Repair, given: Path = Path(), *, shown: bool = False) -> Pair:
    """The models that are meant, and what is done with them; what is an object is written as a file.

    Args:
        options: Of a verb of two models.
        given: Folder for objects; a shell has none.
        shown: Whether a report is written, which tells how all inputs are answered, also where layers, or the first
            inputs, say enough.

    Raises:
        ConfigError: if a tolerance is negative.
        ModelLoadError: if a file is missing, or of no known format.
        UsageError: if a build is asked for what it hasn't.
        DataError: if the data is unusable.
    """
    if isinstance(options, Compare):
        settings = answer_settings(options, first=not shown)
    else:
        settings = layer_settings(options, first=not shown)
    declared, data = input_specs(options.inputs), data_file(options.data, given, limit=options.count)
    between = getattr(options, "between", ())
    called = ["source", *(f"between[{place}]" for place in range(len(between))), "target"]
    written = [
        model_file(model, given / str(place), inputs=declared, data=data, name=name, recorded=True)
        for place, (name, model) in enumerate(zip(called, (options.source, *between, options.target), strict=True))
    ]
    paths = [path for path, _ in written]
    recipe, target_recipe = recipe_of(options.recipe), recipe_of(options.target_recipe)
    _check(paths, data, has_recipe=target_recipe is not None)
    names = names_of(paths, numbered=not isinstance(options, Compare))
    usual = data is None and options.samples is None
    count = fitting_count(options.count, paths) if usual else options.count
    asked: dict[str, Any] = {
        "source": paths[0],
        "target": paths[-1],
        "names": names,
        "between": paths[1:-1],
        "data": data,
        "limit": options.limit,
        "recipe": recipe,
        "target_recipe": target_recipe,
        "inputs": declared,
        "samples": count,
        "seed": options.seed,
        "low": options.low,
        "high": options.high,
        "batch_size": options.batch_size if isinstance(options, Compare) else _AT_ONCE,
        "trust": options.trust or all(own for _, own in written),
    }
    dataset = dataset_for(data, options, samples=count)
    recipe, notes = fitting_recipe(names[0], dataset, recipe)
    if count < options.count:
        notes = [*notes, fewer_in_words(count, paths)]
    build = paths[-1] if is_build(paths[-1]) else None
    subjects = [
        Subject(
            name=name,
            origin=path,
            trust=asked["trust"],
            declared=() if place else declared,
            compare_with=names[0] if place else None,
            converted=place > 0,
            batch_size=asked["batch_size"],
            dataset=dataset,
            recipe=recipe,
        )
        for place, (name, path) in enumerate(zip(names, paths, strict=True))
        if path != build
    ]
    if build is not None:
        from conrepair.application.pipeline.from_config import (
            named_choice,  # the types of a configuration take a while to import
        )

        subjects[0].backends = (LIBRARIES, named_choice("tvm", {"label": "build", "built": str(build)}, build.parent))
    elif recipe is not None and target_recipe is not None:
        subjects[-1].recipe = target_recipe
    return Pair(
        source=paths[0],
        target=paths[-1],
        between=tuple(paths[1:-1]),
        data=data,
        subjects=tuple(subjects),
        settings=settings,
        asked=plain(asked),
        notes=tuple(notes),
    )


def _check(paths: list[Path], data: Path | None, *, has_recipe: bool) -> None:
    """Say at once what isn't there, or can't be asked for.

    Raises:
        ModelLoadError: if a file is missing, or of no known format.
        UsageError: if a build is asked for what it hasn't, or nothing says what recorded outputs were computed for.
    """
    source, *between, target = paths
    if is_build(source):
        raise UsageError(
            f"{source} is a folder that `build` wrote, and it's given as the source. A build can only be the target: "
            "swap the two."
        )
    compiled = is_build(target)
    for path in paths[:-1] if compiled else paths:
        if detect_framework(path, recorded=True) == RECORDED and data is None:
            raise UsageError(
                f"{path} holds outputs that were computed elsewhere, and nothing says for which inputs. Give "
                "these as --data; `conrepair inputs` writes some to compute them for."
            )
    if compiled and between:
        raise UsageError("a build is compared with the model that it was compiled of: leave --intermediate out.")
    if compiled and has_recipe:
        raise UsageError("a build is fed as its source is, so --target-recipe has no meaning for it. Leave it out.")


def compare_pair(pair: Pair, session: Session, *, folder: Path | None = None) -> Compared:
    """Run both models, and judge the target's answers.

    Args:
        pair: The files.
        session: Where.
        folder: Where the report will be.

    Raises:
        ConrepairError: if a file or the data is unusable.
    """
    name = fitting_name(f"compare-{pair.subjects[0].name}-{pair.asked['names'][-1]}")
    place = folder and folder / name
    if place is not None:
        check_folder(place, "compare", pair.inputs)
    asked, notes = pair.asked, pair.notes
    run = run_models(
        session, pair.settings, pair.subjects, name=name, folder=place, asked=asked, notes=notes, kind="compare"
    )
    return Compared(run=run, store=session.store.root)


def localize_pair(pair: Pair, session: Session) -> Localized:
    """Name the layers in which the target stops being its source.

    Args:
        pair: The files.
        session: Where.

    Raises:
        ConrepairError: if a file can't be loaded or looked into.
    """
    run, step = _look_into(pair, session)
    row = run.rows[-1]
    found, compared = step.localization, step.compared
    if pair.between:
        middle = zip(pair.between, run.rows[1:-1], strict=True)
        found = attribute_steps(
            found, [(path.name, item.localized.result) for path, item in middle], pair.target.name
        )
    if pair.compiled:  # the run has a copy of it
        compared = replace(compared, build=str(pair.target))
    row = replace(row, localized=row.localized.with_own(compared=compared, localization=found))
    return Localized(run=run.with_row(row))


def repair_pair(pair: Pair, session: Session) -> Repaired:
    """Repair the target in its own format; the first Ctrl-C ends the search with the best that was verified.

    Args:
        pair: The files.
        session: Where.

    Raises:
        ConrepairError: if a file can't be loaded or looked into.
    """
    for path in (pair.source, pair.target):
        if not is_build(path) and detect_framework(path, recorded=True) == RECORDED:
            raise UsageError(
                f"{path} holds outputs that were computed elsewhere, and a repair edits and runs models. `localize` "
                "takes them; for a repair give the files."
            )
    for journal in journals(session.store.own):
        end_early(journal, wanted=False)
    with ended_gently(lambda: _end_searches(session.store.own)):
        try:
            run, _ = _look_into(pair, session)
        except ConrepairError as error:
            if pair.compiled or error.exit_code != ExitCode.MODEL_LOAD:
                raise
            run = _look_into_copy(pair, session, error)
    return Repaired(run=run)


def _look_into(pair: Pair, session: Session) -> tuple[AuditResult, LocalizedStep]:
    """Look at every layer of a source and what was made of it.

    Returns:
        The run, with a row for each file (of a build, for its model and for itself), in their order; and where the
        target stops being its source.

    Raises:
        ConrepairError: what kept the source or the target from being looked at (not: from being repaired).
    """
    kind: RunKind = "repair" if pair.settings.stages.repair else "localize"
    run = run_models(session, pair.settings, pair.subjects, asked=pair.asked, notes=pair.notes, kind=kind)
    for row in (run.rows[0], run.rows[-1]):
        problem = row.localized.problem or (row.problem if row.localized.result is None else None)
        if problem is not None:
            raise problem.as_error()
    steps = run.rows[-1].localized.steps
    if not steps:
        raise ValueError(f"{pair.target} was not localized, and nothing says why")
    return run, steps[-1]


def _look_into_copy(pair: Pair, session: Session, error: ConrepairError) -> AuditResult:
    """The same of a copy that libraries take, where the target is refused for how it's written alone.

    Raises:
        ConrepairError: what it was refused for, where that's something else.
    """
    from conrepair.formats.onnx.load.well_formed import write_well_formed  # imports onnx

    copy = session.room / _WELL_FORMED / f"repaired{pair.target.suffix}"
    changes = write_well_formed(pair.target, copy)
    if not changes:
        raise error
    *others, last = pair.subjects
    last = replace(last, origin=copy)
    asked = {**pair.asked, "target": str(copy)}
    run, step = _look_into(replace(pair, target=copy, subjects=(*others, last), asked=asked), session)
    row, compared = run.rows[-1], step.compared
    model = replace(compared.target, path=str(pair.target), sha256=model_sha256(pair.target))
    repaired = row.repaired
    if repaired.problem is None:
        repaired = replace(repaired, result=with_form(changes, compared.target, step.localization, repaired.result))
    localized = row.localized.with_own(compared=replace(compared, target=model))
    return run.with_row(replace(row, localized=localized, repaired=repaired))


def _end_searches(store: Path) -> bool:
    """Let them end with what they have; whether there are any."""
    for journal in (found := journals(store)):
        end_early(journal)
    if found:
        sys.stderr.write("conrepair: the best that was verified is being written; Ctrl-C again stops at once\n")
    return bool(found)

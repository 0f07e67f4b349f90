"""Compare, localize and repair two files: what Python and the command line share."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from conrepair.application.engine.session import Session
from conrepair.application.pipeline.datasets import dataset_for, fewer_in_words, fitting_count, times_larger
from conrepair.application.pipeline.declared_inputs import input_specs
from conrepair.application.pipeline.recipes import fitting_recipe, recipe_of
from conrepair.application.pipeline.run import Request, run_models
from conrepair.application.pipeline.settings import LIBRARIES, verb_settings
from conrepair.application.pipeline.subject import Subject, names_of
from conrepair.application.report.folder import check_folder
from conrepair.application.report.result import AuditResult, LocalizedStep
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


def is_build(path: Path) -> bool:
    """Whether a folder is a build of TVM."""
    return (path / BUILD).is_file()


def repair_folder(output: str | None, target: Path) -> Path:
    """Where a repaired model goes: a search of minutes isn't thrown away because nobody named a folder.

    Args:
        output: That was named.
        target: Default: a folder of its name in the current one.
    """
    return Path(f"{fitting_name(target.stem)}-repaired" if output is None else output).absolute()


def pair_of(options: Compare | Localize | Repair, given: Path = Path(), *, shown: bool = False) -> Request:
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
    settings, compares = verb_settings(options, first=not shown), isinstance(options, Compare)
    declared, data = input_specs(options.inputs), data_file(options.data, given, limit=options.count)
    between = options.between if isinstance(options, Localize) else ()
    models = {"source": options.source}
    models |= {f"between[{place}]": model for place, model in enumerate(between)} | {"target": options.target}
    written = [
        model_file(model, given / str(place), inputs=declared, data=data, name=name, recorded=True)
        for place, (name, model) in enumerate(models.items())
    ]
    paths = [path for path, _ in written]
    recipe, target_recipe = recipe_of(options.recipe), recipe_of(options.target_recipe)
    _check(paths, data, has_recipe=target_recipe is not None)
    names = names_of(paths, numbered=not compares)
    usual, times = data is None and options.samples is None, times_larger(paths)
    count = fitting_count(options.count, times) if usual else options.count
    if options.timeout == type(options).timeout:
        settings = replace(settings, seconds=options.timeout * times)
    batch_size, trust = options.batch_size if compares else _AT_ONCE, options.trust or all(own for _, own in written)
    asked = {
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
        "batch_size": batch_size,
        "trust": trust,
    }
    dataset = dataset_for(data, options, samples=count, models=paths)
    guessed, recipe, notes = recipe is None, fitting_recipe(dataset, recipe), [*dataset.notes]
    if count < options.count:
        notes = [*notes, fewer_in_words(count, times)]
    build = paths[-1] if is_build(paths[-1]) else None
    subjects = [
        Subject(
            name=name,
            origin=path,
            trust=trust,
            declared=() if place else declared,
            compare_with=names[0] if place else None,
            converted=place > 0,
            batch_size=batch_size,
            dataset=dataset,
            recipe=recipe,
            guessed=guessed,
        )
        for place, (name, path) in enumerate(zip(names, paths, strict=True))
        if path != build
    ]
    if build is not None:
        # The types of a configuration take a while to import.
        from conrepair.application.pipeline.from_config import named_choice

        subjects[0].backends = (LIBRARIES, named_choice("tvm", {"label": "build", "built": str(build)}, build.parent))
    elif recipe is not None and target_recipe is not None:
        subjects[-1].recipe = target_recipe
    if isinstance(options, Localize) and options.backend != LIBRARIES.name:
        if build is not None:
            raise UsageError("a build runs on TVM already: leave out --backend.")
        from conrepair.application.pipeline.single import backend_of  # with what runs one model

        subjects = subjects[:1] if paths[1:] == paths[:1] else subjects
        subjects[-1].backends = (LIBRARIES, backend_of(options))
    return Request(
        paths=tuple(paths),
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
            f"{source}, the original, is a folder that `build` wrote. A build can only be the converted model: swap "
            "the two."
        )
    compiled = is_build(target)
    for path in paths[:-1] if compiled else paths:
        if detect_framework(path, recorded=True) == RECORDED and data is None:
            raise UsageError(
                f"{path} holds outputs that were computed elsewhere. Give the inputs that they were computed for "
                "(--data); `conrepair inputs` writes inputs to run the model on."
            )
    if compiled and between:
        raise UsageError("a build is compared with the model that it was compiled from: leave out --intermediate.")
    if compiled and has_recipe:
        raise UsageError("a build gets the same inputs as the original: leave out --target-recipe.")


def compare_pair(pair: Request, session: Session, *, folder: Path | None = None) -> Compared:
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
    return Compared(run=run_models(pair, session, "compare", name=name, folder=place), store=session.store.root)


def localize_pair(pair: Request, session: Session) -> Localized:
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
    if between := pair.paths[1:-1]:
        middle = zip(between, run.rows[1:-1], strict=True)
        found = attribute_steps(
            found, [(path.name, item.localized.result) for path, item in middle], pair.target.name
        )
    if is_build(pair.target):  # the run has a copy of it
        compared = replace(compared, build=str(pair.target))
    row = replace(row, localized=row.localized.with_own(compared=compared, localization=found))
    return Localized(run=run.with_row(row))


def repair_pair(pair: Request, session: Session) -> Repaired:
    """Repair the target in its own format; the first Ctrl-C ends the search with the best that was verified.

    Args:
        pair: The files.
        session: Where.

    Raises:
        ConrepairError: if a file can't be loaded or looked into.
    """
    for path in pair.paths:
        if not is_build(path) and detect_framework(path, recorded=True) == RECORDED:
            raise UsageError(
                f"{path} holds outputs that were computed elsewhere, which can't be repaired: give the model's file. "
                "`localize` takes outputs."
            )
    for journal in journals(session.store.own):
        end_early(journal, wanted=False)
    with ended_gently(lambda: _end_searches(session.store.own)):
        try:
            run, _ = _look_into(pair, session)
        except ConrepairError as error:
            if is_build(pair.target) or error.exit_code != ExitCode.MODEL_LOAD:
                raise
            run = _look_into_copy(pair, session, error)
    return Repaired(run=run)


def _look_into(pair: Request, session: Session) -> tuple[AuditResult, LocalizedStep]:
    """Look at every layer of a source and what was made of it.

    Returns:
        The run, with a row for each file (of a build, for its model and for itself), in their order; and where the
        target stops being its source.

    Raises:
        ConrepairError: what kept the source or the target from being looked at (not: from being repaired).
    """
    run = run_models(pair, session, "repair" if pair.settings.stages.repair else "localize")
    for row in (run.rows[0], run.rows[-1]):
        problem = row.localized.problem or (row.problem if row.localized.result is None else None)
        if problem is not None:
            raise problem.as_error()
    steps = run.rows[-1].localized.steps
    if not steps:
        raise ValueError(f"{pair.target} was not localized, and nothing says why")
    return run, steps[-1]


def _look_into_copy(pair: Request, session: Session, error: ConrepairError) -> AuditResult:
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
    asked = {**pair.asked, "target": str(copy)}
    subjects = (*others, replace(last, origin=copy))
    run, step = _look_into(replace(pair, paths=(*pair.paths[:-1], copy), subjects=subjects, asked=asked), session)
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
        sys.stderr.write("conrepair: writing the best repair so far; Ctrl-C again stops at once\n")
    return bool(found)

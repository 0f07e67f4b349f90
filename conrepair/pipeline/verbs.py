"""Compare, localize and repair two files: what Python and the command line share."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from conrepair.backends.tvm.build import BUILD
from conrepair.data.pictures.named_recipes import named_recipe
from conrepair.data.pictures.recipe import Recipe
from conrepair.data.tensor_spec import TensorSpec
from conrepair.engine.session import Session
from conrepair.frameworks.detect import detect_framework
from conrepair.frameworks.formats import RECORDED
from conrepair.frameworks.identity import model_sha256
from conrepair.localization.result import Localization
from conrepair.localization.steps import attribute_steps
from conrepair.pipeline.datasets import Dataset, dataset_for
from conrepair.pipeline.evaluation import Looked
from conrepair.pipeline.run import Told, data_in_words, run_models
from conrepair.pipeline.settings import LIBRARIES, Settings
from conrepair.pipeline.subject import OnDisk, Subject
from conrepair.repairs.result import with_form
from conrepair.report.encode import encode
from conrepair.report.folder import check_folder
from conrepair.report.localization.about import About, about_row
from conrepair.report.repair.summary import conversion_lines
from conrepair.report.result import Row, RunKind
from conrepair.report.results import Compared, Converted, Executed, Localized, Repaired
from conrepair.runtime.errors import ConfigError, ConrepairError, ExitCode, UsageError
from conrepair.runtime.interruption import ended_gently
from conrepair.runtime.journal import end_early
from conrepair.runtime.path_text import fitting_name
from conrepair.runtime.store import journals

_WELL_FORMED = "well-formed"  # folder of a copy of the target


@dataclass(frozen=True, kw_only=True)
class PairRequest:
    """Two files, and what they're fed.

    Attributes:
        source: The model that is right.
        target: Its conversion, or a folder that `build` wrote.
        names: Of the models, in their order.
        between: Models on the way, in order.
        data: Folder of photos, or .npz/.npy; None: inputs are drawn.
        limit: Take so many samples of the data; None: all.
        recipe: How photos become tensors; None: raw pixels.
        target_recipe: The same for the target; None: as for the source.
        inputs: Of models whose files don't say them.
        samples: How many inputs are drawn.
        seed: Of these.
        low: Lower end of their range; None: what the files are made for.
        high: The upper end.
        batch_size: How many samples at once, for models that leave it open.
        trust: Whether code and pickles in the files may run.
    """

    source: Path
    target: Path
    names: tuple[str, ...]
    between: tuple[Path, ...] = ()
    data: Path | None = None
    limit: int | None = None
    recipe: Recipe | None = None
    target_recipe: Recipe | None = None
    inputs: tuple[TensorSpec, ...] = ()
    samples: int = 32
    seed: int = 0
    low: float | None = None
    high: float | None = None
    batch_size: int = 16
    trust: bool = False

    def __post_init__(self) -> None:
        """Refuse what can't be meant.

        Raises:
            ConfigError: if so.
        """
        for name in ("samples", "batch_size", "limit"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{name} is {value}: give at least 1")

    @property
    def compiled(self) -> bool:
        """Whether the target is a build."""
        return is_build(self.target)

    def check(self) -> None:
        """Say at once what isn't there, or can't be asked for.

        Raises:
            ModelLoadError: if a file is missing, or of no known format.
            UsageError: if a build is asked for what it hasn't.
        """
        if is_build(self.source):
            raise UsageError(
                f"{self.source} is a folder that `build` wrote, and it's given as the source. A build can "
                "only be the target: swap the two."
            )
        for path in (self.source, *self.between, *(() if self.compiled else (self.target,))):
            if detect_framework(path, recorded=True) == RECORDED and self.data is None:
                raise UsageError(
                    f"{path} holds outputs that were computed elsewhere, and nothing says for which inputs. Give "
                    "these as --data; `conrepair inputs` writes some to compute them for."
                )
        if self.compiled and self.between:
            raise UsageError("a build is compared with the model that it was compiled of: leave --intermediate out.")
        if self.compiled and self.target_recipe is not None:
            raise UsageError(
                "a build is fed as its source is, so --target-recipe has no meaning for it. Leave it out."
            )


def is_build(path: Path) -> bool:
    """Whether a folder is a build of TVM."""
    return (path / BUILD).is_file()


def _subjects_of_pair(asked: PairRequest) -> tuple[list[Subject], list[str]]:
    """The models to look at, the source first; and what a person should know.

    Raises:
        DataError: if the data is unusable.
    """
    dataset = dataset_for(
        asked.data, samples=asked.samples, seed=asked.seed, low=asked.low, high=asked.high, limit=asked.limit
    )
    recipe, notes = fitting_recipe(asked.names[0], dataset, asked.recipe)
    paths = (asked.source, *asked.between, *(() if asked.compiled else (asked.target,)))
    first = asked.names[0]
    subjects = [
        Subject(
            name=name,
            origin=OnDisk(path, asked.trust),
            declared=() if place else asked.inputs,
            compare_with=first if place else None,
            converted=place > 0,
            batch_size=asked.batch_size,
            dataset=dataset,
            recipe=recipe,
        )
        for place, (name, path) in enumerate(zip(asked.names, paths, strict=False))
    ]
    if asked.compiled:
        from conrepair.pipeline.from_config import named_choice

        built = {"label": "build", "built": str(asked.target)}
        subjects[0].backends = (LIBRARIES, named_choice("tvm", built, asked.target.parent))
    elif recipe is not None and asked.target_recipe is not None:
        subjects[-1].recipe = asked.target_recipe
    return subjects, notes


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


def _look_into(asked: PairRequest, settings: Settings, session: Session) -> tuple[Looked, Localization, Told]:
    """Look at every layer of a source and what was made of it.

    Args:
        asked: The files.
        settings: With the stage that localizes.
        session: Where.

    Returns:
        What was seen, with a row for each file (of a build, for its model and for itself), in their order; where the
        target stops being its source; and what makes the run of it as reports show it.

    Raises:
        ConrepairError: what kept the source or the target from being looked at (not: from being repaired).
    """
    asked.check()
    subjects, notes = _subjects_of_pair(asked)
    kind: RunKind = "repair" if settings.stages.repair else "localize"
    looked, told = run_models(session, settings, subjects, asked=encode(asked, text=str), notes=notes, kind=kind)
    for row in (looked.rows[0], looked.rows[-1]):
        problem = row.localized.problem or (row.problem if row.localized.result is None else None)
        if problem is not None:
            raise problem.as_error()
    found = looked.rows[-1].localized.result
    if found is None:
        raise ValueError(f"{asked.target} was not localized, and nothing says why")
    return looked, found, told


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
    subjects, notes = _subjects_of_pair(asked)
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
    looked, found, told = _look_into(asked, settings, session)
    _, *middle, row = looked.rows
    if asked.between:
        steps = [(path.name, item.localized.result) for path, item in zip(asked.between, middle, strict=True)]
        found = attribute_steps(found, steps, asked.target.name)
    compared = row.localized.steps[-1].compared
    if asked.compiled:  # the run has a copy of it
        compared = dataclasses.replace(compared, build=str(asked.target))
    row = dataclasses.replace(row, localized=row.localized.with_own(compared=compared, localization=found))
    looked = dataclasses.replace(looked, rows=(*looked.rows[:-1], row))
    return Localized(localization=found, about=_about(looked), whole=partial(told, [looked]))


def _about(looked: Looked) -> About:
    """The circumstances of the target's localization."""
    return about_row(looked.rows[-1], data_in_words(looked.subjects[0], looked.subjects))


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
            looked, found, told = _look_into(asked, settings, session)
        except ConrepairError as error:
            if asked.compiled or error.exit_code != ExitCode.MODEL_LOAD:
                raise
            from conrepair.frameworks.onnx_files.well_formed import write_well_formed  # imports onnx

            copy = session.room / _WELL_FORMED / f"repaired{asked.target.suffix}"
            changes = write_well_formed(asked.target, copy)
            if not changes:
                raise
            looked, found, told = _look_into(dataclasses.replace(asked, target=copy), settings, session)
            looked = _as_it_came(looked, found, changes, asked.target)
    row, whole = looked.rows[-1], partial(told, [looked])
    return Repaired(before=found, about=_about(looked), repaired=row.repaired, whole=whole)


def _as_it_came(looked: Looked, found: Localization, changes: tuple[str, ...], target: Path) -> Looked:
    """What was seen of a copy that libraries take, as what was seen of the target."""
    row = looked.rows[-1]
    compared = row.localized.steps[-1].compared
    model = dataclasses.replace(compared.target, path=str(target), sha256=model_sha256(target))
    repaired = row.repaired
    if repaired.problem is None:
        done = with_form(changes, compared.target, found, repaired.result)
        repaired = dataclasses.replace(repaired, result=done)
    localized = row.localized.with_own(compared=dataclasses.replace(compared, target=model), localization=found)
    row = dataclasses.replace(row, localized=localized, repaired=repaired)
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

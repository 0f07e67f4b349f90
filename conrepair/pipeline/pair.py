"""A source and what was made of it, as they're asked for: plain values that need no configuration."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from conrepair.backends.tvm.build import BUILD
from conrepair.data.pictures.recipe import Recipe
from conrepair.data.tensor_spec import TensorSpec
from conrepair.engine.session import Session
from conrepair.frameworks.detect import detect_framework
from conrepair.frameworks.formats import RECORDED
from conrepair.localization.result import Localization
from conrepair.pipeline.datasets import Dataset, dataset_for
from conrepair.pipeline.evaluation import Looked
from conrepair.pipeline.recipes import raw_recipe
from conrepair.pipeline.run import Told, run_models
from conrepair.pipeline.settings import LIBRARIES, BackendChoice, Settings
from conrepair.pipeline.subject import OnDisk, Subject
from conrepair.report.encode import encode
from conrepair.report.result import RunKind
from conrepair.runtime.errors import ConfigError, UsageError

__all__ = ["PairRequest", "fitting_recipe", "is_build", "look_into", "subjects_of_pair"]

_BUILD_LABEL = "build"


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

    def dataset(self) -> Dataset:
        """What the models run on.

        Raises:
            ConfigError: if the range or the seed can't be meant.
            DataError: if it's missing, empty or damaged.
        """
        return dataset_for(
            self.data, samples=self.samples, seed=self.seed, low=self.low, high=self.high, limit=self.limit
        )


def is_build(path: Path) -> bool:
    """Whether a folder is a build of TVM."""
    return (path / BUILD).is_file()


def subjects_of_pair(asked: PairRequest) -> tuple[list[Subject], list[str]]:
    """The models to look at, the source first; and what a person should know.

    Raises:
        DataError: if the data is unusable.
    """
    dataset = asked.dataset()
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
        subjects[0].backends = (LIBRARIES, _built(asked.target))
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
    return raw_recipe(), [f"{name}: {words}"]


def _built(folder: Path) -> BackendChoice:
    """A build as the backend that runs it."""
    from conrepair.pipeline.from_config import named_choice

    options = {"label": _BUILD_LABEL, "built": str(folder)}
    return named_choice("tvm", options, folder.parent)


def look_into(asked: PairRequest, settings: Settings, session: Session) -> tuple[Looked, Localization, Told]:
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
    subjects, notes = subjects_of_pair(asked)
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

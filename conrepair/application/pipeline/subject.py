"""A model that a run looks at: where it comes from, what it's fed, whether it's there, its name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from conrepair.application.jobs.values import BuildRequest
from conrepair.application.pipeline.datasets import Dataset
from conrepair.application.pipeline.plan import Goal
from conrepair.application.pipeline.settings import LIBRARIES, BackendChoice
from conrepair.application.report.result import Problem
from conrepair.formats.models.model import LoadedModel
from conrepair.ground.data.pictures.recipe import Recipe
from conrepair.ground.data.symbolic_sizes import with_declared_sizes
from conrepair.ground.data.synthetic import SyntheticRange
from conrepair.ground.data.tensor_spec import TensorSpec, merge_declared
from conrepair.ground.runtime.path_text import fitting_name


@dataclass(kw_only=True)
class Subject:
    """A model of a run, as plain values, which stages fill in.

    Attributes:
        name: Unique in the run.
        origin: Its file or folder, or how it's built; None where that couldn't be told, which is the problem.
        trust: Whether code and pickles in a file may run.
        sha256: Of what a file holds; "" where that isn't known yet.
        declared: Inputs, or sizes of them, that its file doesn't say.
        compare_with: Name of the subject that is its specification; None: it's one itself.
        converted: Whether it's a conversion of that, as a target is, and no model of somebody's own.
        goals: What it's converted to.
        backends: Where it runs.
        batch_size: How many samples it gets at once where it leaves that open.
        dataset: What it runs on.
        recipe: How photos become tensors; None where there are none.
        guessed: Whether nobody said that.
        calibrated: The converter that takes its ranges from photos, so that their preprocessing must be known.
        source: The model, once it was made or described.
        problem: Why it can't be looked at.
    """

    name: str
    origin: Path | BuildRequest | None
    trust: bool = False
    sha256: str = ""
    declared: tuple[TensorSpec, ...] = ()
    compare_with: str | None = None
    converted: bool = False
    goals: tuple[Goal, ...] = ()
    backends: tuple[BackendChoice, ...] = (LIBRARIES,)
    batch_size: int = 16
    dataset: Dataset | None = None
    recipe: Recipe | None = None
    guessed: bool = False
    calibrated: str = ""
    source: LoadedModel | None = None
    problem: Problem | None = None

    @property
    def path(self) -> Path:
        """Of a model that exists."""
        if not isinstance(self.origin, Path):
            raise TypeError(f"{self.name} is no file")
        return self.origin

    @property
    def loaded(self) -> LoadedModel:
        """The model, of one that is there."""
        if self.source is None:
            raise ValueError(f"{self.name} was not made")
        return self.source

    @property
    def reference(self) -> str:
        """Name of its specification, which may be itself."""
        return self.compare_with or self.name

    @property
    def drawn(self) -> bool:
        """Whether its inputs are drawn at random."""
        return self.dataset is not None and self.dataset.kind == "synthetic"

    @property
    def limits(self) -> SyntheticRange | None:
        """Of inputs that are drawn; None for others."""
        return self.dataset.limits if self.dataset is not None and self.drawn else None

    def inputs(self, source: LoadedModel) -> tuple[TensorSpec, ...]:
        """A model's inputs, with what is declared about them filled in."""
        return merge_declared(source.description.inputs, self.declared)

    def open_sizes_filled(self, source: LoadedModel) -> tuple[TensorSpec, ...]:
        """A model's inputs, maybe of a conversion that renamed them, with declared sizes where its own are open."""
        return with_declared_sizes(source.description.inputs, self.declared)


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

"""Rows of a run: which are targets, where a folder has their files, and the paths in them, changed all together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from conrepair.evaluate.run import Run
from conrepair.evaluate.verdict import Verdict
from conrepair.frameworks.model import Model
from conrepair.repairs.outcomes import Advice
from conrepair.repairs.result import RepairResult
from conrepair.report.result import (
    AuditResult,
    Build,
    Compared,
    LocalizedStep,
    LocalizedTarget,
    Ran,
    RepairedTarget,
    Row,
)
from conrepair.runtime.file_names import FileNames
from conrepair.runtime.workers import NO_DEVICE

_Move = Callable[[str], str]
Value = TypeVar("Value")
Places = Mapping[type[Any], tuple[str, ...]]
"""Fields that are paths, or hold some, by the types that have them."""

_PLACES: Places = {
    Row: ("ran", "localized", "repaired"),
    Ran: ("artifact", "build", "run"),
    LocalizedTarget: ("steps",),
    LocalizedStep: ("compared",),
    Compared: ("source", "target", "build"),
    RepairedTarget: ("result", "advice"),
    RepairResult: ("model", "patch"),
    Advice: ("model",),
    Model: ("path",),
    Build: ("folder",),
    Run: ("folder",),
}


def placed(value: Value, move: _Move, more: Places = MappingProxyType({})) -> Value:
    """A row, or what it holds, whose models, builds, outputs and patches lie elsewhere.

    Args:
        value: A row, a model, a repair's result.
        move: The new path of an old one; "" isn't asked for.
        more: Types of another's, that hold some.
    """
    changed: Value = _placed(value, move, {**_PLACES, **more})
    return changed


def _placed(value: Any, move: _Move, places: Places) -> Any:
    if isinstance(value, tuple):
        return tuple(_placed(item, move, places) for item in value)
    if isinstance(value, str | Path):
        return value and type(value)(move(str(value)))
    names = places.get(type(value), ())
    return replace(value, **{name: _placed(getattr(value, name), move, places) for name in names}) if names else value


def relative_to(folder: Path) -> _Move:
    """Paths below a folder as seen from there, others as they are: so that the folder may be moved."""

    def move(path: str) -> str:
        place = Path(path)
        return place.relative_to(folder).as_posix() if place.is_relative_to(folder) else path

    return move


def resolved_in(folder: Path) -> _Move:
    """The inverse: paths as seen from a folder, made absolute."""
    return lambda path: str(folder / path)


_SOURCE = "source"


class RowFolders:
    """Paths below the run's folder, all relative and with `/`; none leads out of it, and no two rows share one.

    Names of rows come from configurations, from files, and from documents that somebody else has written.

    Args:
        rows: All of the run, in its order: the same rows have the same paths whenever they're asked for.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self._models, self._errors = FileNames(), FileNames()
        self._looked_into: defaultdict[str, FileNames] = defaultdict(FileNames)
        self._conversions: defaultdict[str, FileNames] = defaultdict(FileNames)
        self._backends: defaultdict[tuple[str, str], FileNames] = defaultdict(FileNames)
        for row in rows:
            self.run(row), self.looked_into(row), self.error(row)

    def name(self, row: Row) -> str:
        """Of a row's model, wherever it ran."""
        conversions = self._conversions[row.model]
        return f"{self._model(row)}/{conversions.of(row.conversion, row.conversion or _SOURCE)}"

    def model(self, row: Row) -> str:
        """For the model itself."""
        return f"models/{self.name(row)}"

    def run(self, row: Row) -> str:
        """For what the model gave in one place."""
        backend = self._backends[row.model, row.conversion].of(row.backend, row.backend)
        return f"runs/{self.name(row)}/{backend}"

    def looked_into(self, row: Row) -> str:
        """Of what was localized and repaired: a build has its own folder beside its model's."""
        conversion, build = row.conversion or _SOURCE, row.backend if row.ran.build is not None else None
        wanted = conversion if build is None else f"{conversion}@{build}"
        return f"{self._model(row)}/{self._looked_into[row.model].of((row.conversion, build), wanted)}"

    def localization(self, row: Row, place: int) -> str:
        """For the localization of a step: the one that explains the row, and inside of it the others.

        Args:
            row: Of a target.
            place: Of the step.
        """
        folder = f"localization/{self.looked_into(row)}"
        return folder if place == row.localized.explaining else f"{folder}/{row.localized.steps[place].name}"

    def repair(self, row: Row) -> str:
        """For what a repair made."""
        return f"repair/{self.looked_into(row)}"

    def error(self, row: Row) -> str:
        """The file that tells what failed."""
        wanted = f"{row.model}/{row.conversion or _SOURCE}@{row.backend}".replace("/", "__")
        return f"errors/{self._errors.of((row.model, row.conversion, row.backend), wanted)}.log"

    def _model(self, row: Row) -> str:
        return self._models.of(row.model, row.model)


OF_FILES = {"compare", "localize", "repair"}
"""Kinds of runs of files that were named, one by one."""


def target_rows(result: AuditResult) -> list[Row]:
    """What was held against something else, or should have been, in the run's order.

    Args:
        result: Of any verb, or of an audit.
    """
    return list(filter(is_target, result.rows))


def is_target(row: Row) -> bool:
    """Whether a row is one of them: a source on another backend is, too."""
    return row.kind != "reference" or row.verdict is not None or row.problem is not None


def name_of(row: Row, result: AuditResult) -> str:
    """What a person calls a row's model: where two files were given, its file.

    Args:
        row: Of the run.
        result: The run.
    """
    if result.kind in OF_FILES and row.ran.artifact is not None:
        return Path(row.ran.artifact.path).name
    return row.label


def word_of(row: Row, verdict: Verdict | None) -> str:
    """A verdict in a word, or what there is in its place.

    Args:
        row: That it's of.
        verdict: The row's, or one by its layers or after its repair.
    """
    if verdict is not None:
        return str(verdict)
    if row.problem is None:
        return "not judged"
    return "no device" if without_device(row) else "error"


def without_device(row: Row) -> bool:
    """Whether what it was to run on isn't there."""
    return row.problem is not None and row.problem.kind == NO_DEVICE

"""Where a folder has the files of a run's rows, and the paths in these, changed all together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from conrepair.application.report.result import (
    Build,
    Compared,
    LocalizedStep,
    LocalizedTarget,
    Ran,
    RepairedTarget,
    Row,
)
from conrepair.diagnosis.repairs.outcomes import Advice
from conrepair.diagnosis.repairs.result import RepairResult
from conrepair.formats.models.model import Model
from conrepair.ground.runtime.path_text import FileNames
from conrepair.verdicts.evaluate.run import Run

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
        return tuple([_placed(item, move, places) for item in value])
    if isinstance(value, Mapping):
        return {name: _placed(item, move, places) for name, item in value.items()}
    if isinstance(value, str | Path):
        return type(value)(move(str(value)))
    changes = {}
    for name in places.get(type(value), ()):
        if held := getattr(value, name):
            changes[name] = _placed(held, move, places)
    return replace(value, **changes) if changes else value


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

"""Where a run's folder has the files of its rows: names of rows become paths here, and nowhere else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from conrepair.report.result import Row
from conrepair.runtime.file_names import FileNames

__all__ = ["RowFolders"]

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

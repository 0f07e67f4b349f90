"""One model on several backends: every two of them compared, in answers, errors and times."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from rich.table import Table

from conrepair.application.report.csv_text import csv_text
from conrepair.application.report.figures import figures_of
from conrepair.application.report.result import AuditResult, Place, Row
from conrepair.ground.metrics.statistics import SIGNIFICANCE_LEVEL
from conrepair.verdicts.evaluate.compare import Comparison

_FEWEST = 3  # of two backends, the list of rows says all
_MOST = 100
_COLUMNS = ("backend", "library", "target", "setting", "importer", "device", "ms")


@dataclass(frozen=True)
class BackendPair:
    """Two backends of a model; `first` stands above `second` in the list of rows.

    Attributes:
        first: A row.
        second: Another.
        comparison: Of their runs, in either order.
    """

    first: Row
    second: Row
    comparison: Comparison

    @property
    def time_ratio(self) -> float:
        """Median time of the second divided by the first's."""
        first, second = (row.ran.times.median if row.ran.times else float("nan") for row in (self.first, self.second))
        return second / first if first else float("inf")

    @property
    def figures(self) -> dict[str, Any]:
        """What is said of the pair."""
        measured, times = figures_of(self.comparison), self.comparison.times
        differing, samples = measured.answers or (None, None)
        return {
            "verdict": self.comparison.verdict.value,
            "top1_differs": differing,
            "samples": samples,
            "relative_l2": measured.error,
            "max_abs": measured.max_abs,
            "time_ratio": self.time_ratio,
            "p_value": times.p_value,
            "corrected_p": times.corrected_p,
            "significant": times.significant if times.decidable else None,
        }


@dataclass(frozen=True)
class BackendMatrix:
    """A model and the backends that ran it.

    Attributes:
        name: As `Row.name`.
        rows: Those that ran.
        pairs: Every two of them.
    """

    name: str
    rows: tuple[Row, ...]
    pairs: tuple[BackendPair, ...]


def matrices(result: AuditResult) -> list[BackendMatrix]:
    """One for each model that ran on three backends or more (up to 100), and was evaluated."""
    compared = {frozenset((item.reference, item.candidate)): item for item in result.comparisons}
    groups: defaultdict[str, list[Row]] = defaultdict(list)
    for row in result.rows:
        if row.ran.run is not None:
            groups[row.name].append(row)
    found = []
    for name, rows in groups.items():
        if not _FEWEST <= len(rows) <= _MOST:
            continue
        pairs = [
            BackendPair(one, two, compared[key])
            for one, two in combinations(rows, 2)
            if (key := frozenset(row.ran.run.name for row in (one, two) if row.ran.run is not None)) in compared
        ]
        if pairs:
            found.append(BackendMatrix(name, tuple(rows), tuple(pairs)))
    return found


def backends_csv(found: list[BackendMatrix]) -> str:
    """All pairs of all matrices, one on each line."""
    lines = [_line(matrix, pair) for matrix in found for pair in matrix.pairs]
    return csv_text(lines[0], (line.values() for line in lines)) if lines else ""


def _line(matrix: BackendMatrix, pair: BackendPair) -> dict[str, Any]:
    sides = (("first", pair.first), ("second", pair.second))
    places = {f"{side}_{key}": value for side, row in sides for key, value in _about(row).items()}
    return {"model": matrix.name} | places | pair.figures


def matrix_table(matrix: BackendMatrix) -> Table:
    """For the console: times above the diagonal, answers and errors below."""
    table = Table(title=matrix.name, title_justify="left", box=None, pad_edge=False)
    table.add_column("")
    for number in range(1, len(matrix.rows) + 1):
        table.add_column(str(number), justify="right", no_wrap=True)
    table.add_column("ms", justify="right", no_wrap=True)
    places = {id(row): place for place, row in enumerate(matrix.rows)}
    cells = [[""] * len(matrix.rows) for _ in matrix.rows]
    for pair in matrix.pairs:
        first, second = places[id(pair.first)], places[id(pair.second)]
        cells[first][second] = _time_cell(pair)
        measured = figures_of(pair.comparison)
        answers = measured.told("{answers.part}/{answers.of}"), measured.told("{error}") or "unlike"
        cells[second][first] = "\n".join(filter(None, answers))
    for number, (row, line) in enumerate(zip(matrix.rows, cells, strict=True), 1):
        milliseconds = figures_of(None, row.ran).told("{milliseconds:.2f}")
        table.add_row(f"{number} {row.backend}", *line, milliseconds)
    return table


def matrix_legend(shown: list[BackendMatrix]) -> list[str]:
    """What the cells of `matrix_table` mean, with the marks that there are."""
    times = [pair.comparison.times for matrix in shown for pair in matrix.pairs]
    pairs = max((item.comparisons for item in times), default=0)
    level = f"{100 * SIGNIFICANCE_LEVEL:.0f} %"
    lines = [
        "below the diagonal: predictions that differ, relative error; above it: the column's time / the row's",
        f"* a significant difference (Mann-Whitney, corrected by Holm for {pairs} pairs, {level})",
    ]
    if not all(item.decidable for item in times):
        lines.append("? too few batches for any difference to be significant; a smaller batch_size gives more")
    return lines


def _time_cell(pair: BackendPair) -> str:
    times = pair.comparison.times
    if math.isnan(pair.time_ratio):
        return ""  # one of them has no batch after the first
    mark = "?" if not times.decidable else "*" if times.significant else ""
    return f"{pair.time_ratio:.3g}{mark}"


def _about(row: Row) -> dict[str, Any]:
    place = row.place or Place(row.backend)
    milliseconds = figures_of(None, row.ran).milliseconds
    values = (row.backend, place.library, place.target, place.setting, place.importer, place.device, milliseconds)
    return dict(zip(_COLUMNS, values, strict=True))

"""The route matrix as a value and as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from conrepair.application.report.csv_text import plain
from conrepair.application.report.figures import figures_of
from conrepair.application.report.result import AuditResult, Row
from conrepair.application.report.verdict_table import failure_class, first_line, markdown_table
from conrepair.ground.runtime.errors import ExitCode
from conrepair.verdicts.evaluate.verdict import Verdict

FORMATS = ("torch", "keras", "tensorflow", "tflite", "onnx")
GOOD = {Verdict.EQUIVALENT, Verdict.NOISE}


@dataclass(frozen=True)
class Cell:
    """One direction of one model.

    Attributes:
        route: The converters.
        row: What became of it; None where the model never came to be in the format that it starts from.
        detours: Other routes that were tried because this one failed.
        culprits: The converters that failed.
    """

    route: str
    row: Row | None
    detours: tuple[Row, ...] = ()
    culprits: frozenset[str] = frozenset()

    @property
    def good(self) -> bool:
        """Whether the route's answers are the source's."""
        return self.row is not None and self.row.verdict in GOOD

    @property
    def instead(self) -> Row | None:
        """The first detour that works."""
        return next((row for row in self.detours if row.verdict in GOOD), None)


@dataclass(frozen=True)
class Matrix:
    """All directions of some models.

    Attributes:
        cells: By model, format it starts from, and format it ends in.
        made: How each model came to be in each format.
        missing: Why one didn't; under the format "" why a source doesn't load or run.
        audits: What was run: loading, the making, the matrix, and the detours.
    """

    cells: Mapping[tuple[str, str, str], Cell]
    made: Mapping[tuple[str, str], Row]
    missing: Mapping[tuple[str, str], Row]
    audits: tuple[AuditResult, ...]

    @property
    def models(self) -> list[str]:
        """The models' names, in order."""
        return list(dict.fromkeys(model for model, _, _ in self.cells))

    @property
    def exit_code(self) -> int:
        """0 when every direction works on its own route, that of a source's problem if one doesn't work, else 1."""
        problems = [row.exit_code for (_, form), row in self.missing.items() if not form]
        if problems:
            return max(problems)
        return int(ExitCode.EQUIVALENT if all(cell.good for cell in self.cells.values()) else ExitCode.DIFFERENT)


def matrix_markdown(matrix: Matrix, made: str) -> str:
    """One table for each model, and what failed.

    Args:
        matrix: What was run.
        made: The line that says by what.
    """
    parts = ["# Route matrix", "", made, "", *_summary(matrix), ""]
    for model in matrix.models:
        parts += [f"## {model}", "", *_about(matrix, model), ""]
        if (model, "") in matrix.missing:
            continue
        rows = [[f"**{one}**", *(_word(matrix, model, one, two) for two in FORMATS)] for one in FORMATS]
        parts += [*markdown_table(["from \\ to", *FORMATS], rows), ""]
    failures = [
        (place, cell)
        for place, cell in matrix.cells.items()
        if not cell.good and (place[0], "") not in matrix.missing
    ]
    if failures:
        lines = [[*place, cell.route, *_failure(cell)] for place, cell in failures]
        head = ["model", "from", "to", "route", "what failed", "why", "works instead"]
        parts += ["## Failures", "", *markdown_table(head, lines), ""]
    routes = {(one, two): cell.route for (_, one, two), cell in matrix.cells.items() if cell.route}
    lines = [[one, two, route] for (one, two), route in routes.items()]
    if lines:
        parts += ["## Routes", "", *markdown_table(["from", "to", "converters"], lines)]
    return "\n".join(parts) + "\n"


def _summary(matrix: Matrix) -> list[str]:
    words = Counter(
        cell.row.verdict.value if cell.row is not None and cell.row.verdict is not None else "not made"
        for cell in matrix.cells.values()
    )
    counts = ", ".join(f"{count} {word}" for word, count in words.most_common())
    around = sum(cell.instead is not None for cell in matrix.cells.values() if not cell.good)
    seconds = sum(audit.seconds for audit in matrix.audits)
    fails = words.keys() - {verdict.value for verdict in GOOD}
    detours = f"; another route works for {around} of those that fail" if fails else ""
    return [
        f"{len(matrix.cells)} directions of {len(matrix.models)} models: {counts}{detours}. {seconds:.0f} s.",
        "",
        "Every cell is judged against the file in its row's format; the figures are the relative error (L2) of the",
        "output that differs most, and the largest difference of an element.",
    ]


def _about(matrix: Matrix, model: str) -> list[str]:
    broken = matrix.missing.get((model, ""))
    if broken is not None:
        return [f"The original doesn't work: {_why(broken)}"]
    lines = []
    for form in FORMATS:
        row = matrix.made.get((model, form))
        if row is None:
            failed = matrix.missing.get((model, form))
            lines.append(f"- {form}: not made" + (f" by {failed.conversion}: {_why(failed)}" if failed else ""))
        elif row.conversion:
            lines.append(f"- {form}: made by {row.conversion}, {_figures(row)}")
        else:
            data = next((audit.datasets.get(model) for audit in matrix.audits if model in audit.datasets), "")
            lines.append(f"- {form}: the original; {data}")
    return lines


def _why(row: Row) -> str:
    return plain(first_line(row.problem.message if row.problem is not None else row.reason))


def _word(matrix: Matrix, model: str, one: str, two: str) -> str:
    if one == two:
        return "-"
    cell = matrix.cells[model, one, two]
    if cell.row is None:
        return "not made"
    if cell.good:
        return _figures(cell.row)
    return f"**{plain(failure_class(cell.row))}**" + (f"; instead: {_figures(cell.instead)}" if cell.instead else "")


def _figures(row: Row) -> str:
    verdict = row.verdict.value if row.verdict is not None else "not judged"
    return verdict + figures_of(row.comparison).told(" ({error}, {max_abs})")


def _failure(cell: Cell) -> list[str]:
    instead = cell.instead
    works = instead.conversion if instead is not None else "nothing"
    if instead is None and cell.detours:
        works += f" (tried: {', '.join(row.conversion for row in cell.detours)})"
    if cell.row is None:
        return ["not made", "the model doesn't exist in the format that it starts from", works]
    return [plain(failure_class(cell.row)), plain(first_line(cell.row.reason)), works]

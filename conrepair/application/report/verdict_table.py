"""The verdicts of a list of architectures: a table of architecture by route, counts, and every failure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from conrepair.application.report.csv_text import csv_text, plain
from conrepair.application.report.figures import figures_of
from conrepair.application.report.result import AuditResult, Row
from conrepair.application.report.summary import STYLES
from conrepair.application.report.told import state_of, word_of
from conrepair.ground.runtime.errors import ExitCode
from conrepair.ground.runtime.processes.workers import NO_DEVICE, NO_LIBRARY
from conrepair.verdicts.evaluate.verdict import Verdict

_COUNTED = [verdict.value for verdict in Verdict] + ["not judged"]
_NOT_TRIED = "not tried"
_WRONG = {Verdict.FAULTY: "wrong outputs", Verdict.UNDECIDED: "undecided"}
_BY_KIND = {kind: kind for kind in ("timeout", "memory", "crash", "storage")} | {
    NO_DEVICE: "no device",
    NO_LIBRARY: "not installed",
}
_OPERATORS = tuple(
    re.compile(pattern)
    for pattern in (
        r"operator '([\w.:]+)'",  # torch.onnx, TorchScript-based
        r"export of operator (\w+)",
        r"<OpOverload\(op='([\w.]+)'",  # torch.onnx, torch.export-based
        r"operation_type='(\w+)'",  # onnx2torch
        r"'(tf\.\w+)' op (?:is neither|requires)",  # TFLite
        r"tf2onnx could not convert (\w+) ",
    )
)
_COLUMNS = ("architecture", "route", "backend", "kind", "verdict", "class", "relative_l2", "max_abs", "reason")
_REASON_WIDTH = 160
_CELLS = 100_000  # of a table; verdicts.csv has all
_PLACE = re.compile(r"<unknown>:0: error: loc\(.*\): ")  # where in a graph; TensorFlow says it before what


def failure_class(row: Row) -> str:
    """What kind of failure a row is, in a few words; "" for a conversion that is right."""
    if row.verdict in _WRONG:
        return _WRONG[row.verdict]
    problem = row.problem
    if problem is None:
        return ""
    if problem.message.startswith(_NOT_TRIED):
        return _NOT_TRIED
    if problem.kind in _BY_KIND:
        return _BY_KIND[problem.kind]
    if row.kind == "reference":
        return "original fails"
    if row.ran.artifact is not None:
        return "doesn't run"
    if problem.exit_code == ExitCode.USAGE:
        return "no route"
    if problem.exit_code == ExitCode.MODEL_LOAD:
        return "doesn't load"
    found = (pattern.search(problem.message) for pattern in _OPERATORS)
    operator = next((match[1] for match in found if match), None)
    return f"refused: {operator}" if operator else "converter failed"


class _Verdicts:
    """Rows of architectures, by the routes that they took.

    Attributes:
        rows: In the run's order.
        routes: In the order in which they first occur; the source's own only where one of them failed.
        columns: As many of the routes as a table has room for.
        lines: Each architecture with its rows by these; None where there is none.
        failures: Architecture, route, class and reason of each.
    """

    def __init__(self, result: AuditResult) -> None:
        names = set(result.architectures)
        self.rows = [row for row in result.rows if row.model in names]
        self._several = len({row.backend for row in self.rows}) > 1
        shown = [row for row in self.rows if row.conversion or row.problem is not None]
        self.routes = list(dict.fromkeys(map(self._route, shown)))
        self.columns = self.routes[: max(_CELLS // max(len(result.architectures), 1), 1)]
        cells = {(row.model, self._route(row)): row for row in self.rows}
        self.lines = [(name, [cells.get((name, route)) for route in self.columns]) for name in result.architectures]
        self.failures = [
            (row.model, self._route(row), label, first_line(row.reason))
            for row in self.rows
            if (label := failure_class(row)) not in {"", _NOT_TRIED}
        ]

    def _route(self, row: Row) -> str:
        name = row.conversion or "source"
        return f"{name}@{row.backend}" if self._several and row.conversion else name

    def counts(self) -> dict[str, Counter[str]]:
        """How often each verdict, by route."""
        counts: dict[str, Counter[str]] = {route: Counter() for route in self.routes}
        for row in self.rows:
            route = self._route(row)
            if route in counts and (row.verdict is not None or row.problem is not None):
                counts[route][row.verdict.value if row.verdict is not None else "not judged"] += 1
        return counts


def print_verdicts(result: AuditResult, console: Console) -> None:
    """Show the table, the counts of each route, and the failures."""
    found = _Verdicts(result)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("architecture", no_wrap=True)
    lines = []
    for number, route in enumerate(found.columns, 1):
        table.add_column(f"[{number}]", overflow="fold")
        lines.append(Text(f"[{number}] {route}"))
    for name, rows in found.lines:
        table.add_row(name, *map(_styled, rows))
    lines.append(Text(""))
    for route, count in found.counts().items():
        told = ", ".join(f"{count[word]} {word}" for word in _COUNTED if count[word])
        lines.append(Text(f"{route}: {told or 'nothing'}"))
    lines.append(Text(""))
    for architecture, route, label, reason in found.failures:
        lines.append(Text.assemble((f"{architecture} {route}: ", "bold"), f"{label}. {reason}"))
    about = f"{len(result.architectures)} architectures in {result.seconds:.0f} s. Files: {result.folder}"
    console.print(Group(table, Text(""), *lines, Text(about)))


def verdicts_markdown(result: AuditResult) -> str:
    """The same as Markdown."""
    found = _Verdicts(result)
    lines = [[plain(name), *map(_word, rows)] for name, rows in found.lines]
    table = markdown_table(["architecture", *map(plain, found.columns)], lines)
    counted = [[plain(route), *(str(count[word]) for word in _COUNTED)] for route, count in found.counts().items()]
    by_route = markdown_table(["route", *_COUNTED], counted)
    classes = Counter(label.partition(":")[0] for _, _, label, _ in found.failures).most_common()
    told = ", ".join(f"{count} {plain(label)}" for label, count in classes) or "None."
    parts = ["# Verdicts", "", *table, "", "## By route", "", *by_route, "", "## Failures", "", told, ""]
    if found.failures:
        head = ["architecture", "route", "class", "reason"]
        parts += markdown_table(head, [list(map(plain, failure)) for failure in found.failures])
    return "\n".join(parts) + "\n"


def verdicts_csv(result: AuditResult) -> str:
    """One line for each architecture and route."""
    return csv_text(_COLUMNS, map(_line, _Verdicts(result).rows))


def _line(row: Row) -> list[object]:
    measured = figures_of(row.comparison)
    return [
        *(row.model, row.conversion or "source", row.backend, row.kind),
        *(_word(row), failure_class(row), measured.error, measured.max_abs, first_line(row.reason)),
    ]


def _word(row: Row | None) -> str:
    """What stands in a cell."""
    if row is None:
        return ""
    if row.problem is not None:
        label = failure_class(row).partition(":")[0]
        return f"{row.verdict.value} ({label})" if row.verdict is not None and label != _NOT_TRIED else label
    return word_of(row, row.verdict)


def _styled(row: Row | None) -> Text:
    return Text(_word(row), style=STYLES[state_of(None if row is None else row.verdict)])


def first_line(reason: str) -> str:
    """The first line of a reason that says something, cut to the width of a table."""
    line = _PLACE.sub("", next((line.strip() for line in reason.splitlines() if line.strip()), ""))
    return line if len(line) <= _REASON_WIDTH else line[: _REASON_WIDTH - 3] + "..."


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table in Markdown; cells are Markdown, too: texts of others as `plain` gives them."""
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]

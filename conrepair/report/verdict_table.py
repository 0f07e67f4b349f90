"""The verdicts of a list of architectures: a table of architecture by route, counts, and every failure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from conrepair.evaluate.verdict import Verdict
from conrepair.report.csv_text import csv_text, plain
from conrepair.report.result import AuditResult, Row
from conrepair.report.summary import STYLES
from conrepair.runtime.errors import ExitCode
from conrepair.runtime.workers import NO_DEVICE, NO_LIBRARY

__all__ = ["failure_class", "first_line", "markdown_table", "print_verdicts", "verdicts_csv", "verdicts_markdown"]

_COUNTED = [verdict.value for verdict in Verdict] + ["not judged"]
_NOT_TRIED = "not tried"
_BY_KIND = {
    "timeout": "timeout",
    "memory": "memory",
    "crash": "crash",
    "storage": "storage",
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
    if row.verdict is Verdict.FAULTY:
        return "wrong answer"
    if row.verdict is Verdict.UNDECIDED:
        return "undecided"
    problem = row.problem
    if problem is None:
        return ""
    if problem.message.startswith(_NOT_TRIED):
        return _NOT_TRIED
    if problem.kind in _BY_KIND:
        return _BY_KIND[problem.kind]
    if row.kind == "reference":
        return "source fails"
    if row.ran.artifact is not None:
        return "doesn't run"
    if problem.exit_code == ExitCode.USAGE:
        return "no route"
    if problem.exit_code == ExitCode.MODEL_LOAD:
        return "doesn't load"
    found = (pattern.search(problem.message) for pattern in _OPERATORS)
    operator = next((match[1] for match in found if match), None)
    return f"refused: {operator}" if operator else "converter failed"


def print_verdicts(result: AuditResult, console: Console) -> None:
    """Show the table, the counts of each route, and the failures."""
    rows = _rows(result)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("architecture", no_wrap=True)
    routes = _routes(rows)[: max(_CELLS // len(result.architectures), 1)]
    for number, _ in enumerate(routes, 1):
        table.add_column(f"[{number}]", overflow="fold")
    cells = _cells(rows)
    for name in result.architectures:
        table.add_row(name, *(_styled(cells.get((name, route))) for route in routes))
    lines: list[Text] = [Text(f"[{number}] {route}") for number, route in enumerate(routes, 1)]
    lines += [Text(""), *(Text(line) for line in _count_lines(rows)), Text("")]
    lines += [
        Text.assemble((f"{failure.architecture} {failure.route}: ", "bold"), f"{failure.label}. {failure.reason}")
        for failure in _failures(rows)
    ]
    about = f"{len(result.architectures)} architectures in {result.seconds:.0f} s. Files: {result.folder}"
    console.print(Group(table, Text(""), *lines, Text(about)))


def verdicts_markdown(result: AuditResult) -> str:
    """The same as Markdown."""
    rows = _rows(result)
    routes, cells = _routes(rows), _cells(rows)
    columns = routes[: max(_CELLS // max(len(result.architectures), 1), 1)]
    parts = [
        "# Verdicts",
        "",
        *markdown_table(
            ["architecture", *map(plain, columns)],
            [[plain(name), *(_word(cells.get((name, route))) for route in columns)] for name in result.architectures],
        ),
    ]
    counts = _counts(rows)
    parts += [
        "",
        "## By route",
        "",
        *markdown_table(
            ["route", *_COUNTED],
            [[plain(route), *(str(counts[route][word]) for word in _COUNTED)] for route in routes],
        ),
    ]
    failures = _failures(rows)
    classes = Counter(failure.label.partition(":")[0] for failure in failures)
    parts += ["", "## Failures", ""]
    parts += [", ".join(f"{count} {plain(label)}" for label, count in classes.most_common()) or "None.", ""]
    if failures:
        parts += markdown_table(
            ["architecture", "route", "class", "reason"],
            [list(map(plain, (item.architecture, item.route, item.label, item.reason))) for item in failures],
        )
    return "\n".join(parts) + "\n"


def verdicts_csv(result: AuditResult) -> str:
    """One line for each architecture and route."""
    return csv_text(_COLUMNS, map(_line, _rows(result)))


def _line(row: Row) -> list[object]:
    worst = row.comparison.worst if row.comparison else None
    error = (worst.error.relative_l2, worst.error.max_abs) if worst else (None, None)
    return [
        *(row.model, row.conversion or "source", row.backend, row.kind),
        *(_word(row), failure_class(row), *error, first_line(row.reason)),
    ]


@dataclass(frozen=True)
class _Failure:
    """One line of the list of failures."""

    architecture: str
    route: str
    label: str
    reason: str


def _rows(result: AuditResult) -> list[Row]:
    names = set(result.architectures)
    return [row for row in result.rows if row.model in names]


def _route(row: Row, *, several: bool) -> str:
    name = row.conversion or "source"
    return f"{name}@{row.backend}" if several and row.conversion else name


def _several(rows: Sequence[Row]) -> bool:
    return len({row.backend for row in rows}) > 1


def _routes(rows: Sequence[Row]) -> list[str]:
    """The routes, in the order in which they first occur; the source's own row only when one of them failed."""
    several = _several(rows)
    shown = [row for row in rows if row.conversion or row.problem is not None]
    return list(dict.fromkeys(_route(row, several=several) for row in shown))


def _cells(rows: Sequence[Row]) -> dict[tuple[str, str], Row]:
    several = _several(rows)
    return {(row.model, _route(row, several=several)): row for row in rows}


def _word(row: Row | None) -> str:
    """What stands in a cell."""
    if row is None:
        return ""
    if row.problem is not None:
        label = failure_class(row).partition(":")[0]
        return f"{row.verdict.value} ({label})" if row.verdict is not None and label != _NOT_TRIED else label
    if row.verdict is not None:
        return row.verdict.value
    return "reference" if row.kind == "reference" else "not judged"


def _styled(row: Row | None) -> Text:
    style = STYLES[row.verdict] if row is not None and row.verdict is not None else "dim"
    return Text(_word(row), style=style)


def _counts(rows: Sequence[Row]) -> dict[str, Counter[str]]:
    several = _several(rows)
    counts: dict[str, Counter[str]] = {route: Counter() for route in _routes(rows)}
    for row in rows:
        route = _route(row, several=several)
        if route in counts and (row.verdict is not None or row.problem is not None):
            counts[route][row.verdict.value if row.verdict is not None else "not judged"] += 1
    return counts


def _count_lines(rows: Sequence[Row]) -> list[str]:
    return [
        f"{route}: " + (", ".join(f"{count[word]} {word}" for word in _COUNTED if count[word]) or "nothing")
        for route, count in _counts(rows).items()
    ]


def _failures(rows: Sequence[Row]) -> list[_Failure]:
    several = _several(rows)
    return [
        _Failure(row.model, _route(row, several=several), label, first_line(row.reason))
        for row in rows
        if (label := failure_class(row)) not in {"", _NOT_TRIED}
    ]


def first_line(reason: str) -> str:
    """The first line of a reason that says something, cut to the width of a table."""
    line = _PLACE.sub("", next((line.strip() for line in reason.splitlines() if line.strip()), ""))
    return line if len(line) <= _REASON_WIDTH else line[: _REASON_WIDTH - 3] + "..."


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table in Markdown; cells are Markdown, too: texts of others as `plain` gives them."""
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]

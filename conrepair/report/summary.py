"""One screen: every run with its verdict."""

from __future__ import annotations

import io

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from conrepair.evaluate.verdict import Verdict
from conrepair.report.result import AuditResult, Row

__all__ = ["print_summary", "summary_text"]

_STYLES = {
    Verdict.EQUIVALENT: "green",
    Verdict.NOISE: "green",
    Verdict.QUANTIZED: "yellow",
    Verdict.FAULTY: "bold red",
    Verdict.UNDEPLOYABLE: "bold red",
}
_LAST_WORDS_SHOWN = 3
_TEXT_WIDTH = 160


def print_summary(result: AuditResult, console: Console) -> None:
    """Show the table, what went wrong, and where the files are."""
    console.print(_render(result))


def summary_text(result: AuditResult) -> str:
    """The same as plain text."""
    stream = io.StringIO()
    Console(file=stream, width=_TEXT_WIDTH, no_color=True, highlight=False).print(_render(result))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def _render(result: AuditResult) -> RenderableType:
    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    table.add_column("model", overflow="fold", min_width=10)
    table.add_column("conversion", overflow="fold", min_width=18)
    for title in ("run by", "verdict"):
        table.add_column(title, no_wrap=True)
    for title in ("top-1 differs", "rel. error", "max abs", "accuracy", "ms"):
        table.add_column(title, justify="right", no_wrap=True)
    previous = ""
    for row in result.rows:
        model = row.model if row.model != previous else ""
        previous = row.model
        table.add_row(escape(model), *_cells(row))
    return Group(table, *_remarks(result))


def _cells(row: Row) -> list[RenderableType]:
    verdict: RenderableType = Text("reference", style="dim")
    if row.verdict is not None:
        verdict = Text(row.verdict.value, style=_STYLES[row.verdict])
    elif row.problem is not None:
        verdict = Text("error", style="bold red")
    elif row.kind != "reference" or row.run is None:
        verdict = Text("not run" if row.run is None else "not judged", style="dim")
    conversion = row.conversion.replace("+", " > ") or "(source)"
    return [escape(conversion), row.backend, verdict, *_numbers(row)]


def _numbers(row: Row) -> list[str]:
    top1 = error = largest = ""
    worst = row.comparison.worst if row.comparison else None
    if worst is not None:
        error, largest = f"{worst.error.relative_l2:.1e}", f"{worst.error.max_abs:.1e}"
        if worst.answers is not None:
            low, high = worst.answers.top1_interval
            top1 = f"{worst.answers.top1_differs}/{worst.answers.samples} ({100 * low:.0f}-{high:.0%})"
    accuracy = f"{row.accuracy[0]}/{row.accuracy[1]}" if row.accuracy else ""
    milliseconds = f"{1000 * row.times.median:.1f}" if row.times else ""
    return [top1, error, largest, accuracy, milliseconds]


def _remarks(result: AuditResult) -> list[RenderableType]:
    lines: list[RenderableType] = [Text("")]
    lines += [Text.assemble(("note: ", "dim"), note) for note in result.notes]
    for row in result.rows:
        if row.problem is None and row.verdict in {None, Verdict.EQUIVALENT, Verdict.NOISE}:
            continue
        lines.append(Text.assemble((f"{row.name}: ", "bold"), row.reason))
        if row.problem is not None:
            if row.problem.explanation:
                lines.append(Text(f"  {row.problem.explanation}"))
            tail = row.problem.last_words.splitlines()[-_LAST_WORDS_SHOWN:]
            lines += [Text(f"  | {line}"[:_TEXT_WIDTH], style="dim") for line in tail]
    for name, about in result.datasets.items():
        lines.append(Text(f"{name}: {about}", style="dim"))
    lines.append(Text(f"{_count(result)} in {result.seconds:.0f} s. Files: {result.folder}"))
    return lines


def _count(result: AuditResult) -> str:
    counts = {verdict.value: sum(row.verdict is verdict for row in result.rows) for verdict in Verdict}
    errors = sum(row.problem is not None and row.verdict is None for row in result.rows)
    parts = [f"{count} {name}" for name, count in (counts | {"error": errors}).items() if count]
    return ", ".join(parts) or "nothing compared"

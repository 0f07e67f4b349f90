"""What changed between two runs, on a console."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from conrepair.application.report.changes.changes import Changes, Sort, TargetChange
from conrepair.ground.runtime.words import printable, shortened

_STYLES = {Sort.WORSE: "bold red", Sort.BETTER: "green", Sort.NEW: "yellow", Sort.GONE: "yellow", Sort.SAME: "dim"}
_NAME, _WORDS, _MOST, _DETAILS = 60, 300, 40, 8


def print_changes(changes: Changes, console: Console, page: Path | None) -> None:
    """Show what got worse first, with what about it did.

    Args:
        changes: Between two runs.
        console: Where to.
        page: Where all of it is; None where nothing was written.
    """
    columns = (Column(title, overflow="fold") for title in ("", "target", "run by", "before", "now"))
    table = Table(*columns, box=None, pad_edge=False, header_style="bold", show_edge=False)
    for row in changes.rows[:_MOST]:
        name, backend = (shortened(text, _NAME) for text in (row.name, row.backend))
        table.add_row(Text(row.sort, style=_STYLES[row.sort]), name, backend, row.before, row.after)
    console.print(table)
    if len(changes.rows) > _MOST:
        console.print(Text(f"and {len(changes.rows) - _MOST} more", style="dim"))
    for row in changes.rows[:_MOST]:
        for line in _details(row):
            console.print(line)
    told = "" if page is None else f". Page: {printable(str(page))}"
    console.print(Text(f"{changes.sentence}{told}"))


def _details(row: TargetChange) -> Iterator[Text]:
    told = [detail for detail in row.details if detail.sort is not Sort.SAME]
    for detail in told[:_DETAILS]:
        words = " -> ".join(filter(None, (detail.before, detail.after)))
        name, told_so = shortened(row.name, _NAME), f"{detail.what}: {shortened(words, _WORDS)}"
        yield Text.assemble((f"{name}: ", "bold"), (f"{detail.sort} ", _STYLES[detail.sort]), told_so)
    if len(told) > _DETAILS:
        yield Text(f"and {len(told) - _DETAILS} more changes of it", style="dim")

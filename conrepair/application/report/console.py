"""What a run came to, on a console: it follows from the result."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.text import Text

from conrepair.application.report.localization.advice import about_step
from conrepair.application.report.localization.summary import print_localization
from conrepair.application.report.repair.summary import print_repair, print_untouched, verified_on
from conrepair.application.report.result import AuditResult
from conrepair.application.report.saved import PAGE, has_page
from conrepair.application.report.summary import held_lines, print_summary
from conrepair.application.report.told import held_notes
from conrepair.application.report.verdict_table import print_verdicts
from conrepair.ground.runtime.words import printable


def print_result(result: AuditResult, console: Console, folder: Path | None) -> None:
    """Show a run.

    Args:
        result: Of any verb, or of an audit; read from a document, it's shown as it was.
        console: Where to.
        folder: Where its files are; None where none were written. The page in it is named at the end.
    """
    row = result.rows[-1] if result.rows else None
    if result.kind in {"localize", "repair"}:
        for line in held_lines(result):
            console.print(line)
        for note in held_notes(result)[1]:
            console.print(Text.assemble(("note: ", "dim"), note))
    if result.kind == "repair" and row is not None and (repaired := row.repaired.result) is not None:
        print_repair(repaired, console, folder, row.repaired.advice, on=verified_on(repaired, result))
    elif result.kind == "repair" and row is not None and row.localized.result is not None:
        print_untouched(row.localized.result, row.repaired.problem, console)
    elif row is not None and row.localized.steps and (result.kind == "localize" or row.is_static):
        found = row.localized.steps[-1].localization
        print_localization(found, console, about=about_step(row, result), folder=folder)
    else:
        # Architectures as a table of verdicts, or many would fill many screens.
        if any(row.model not in result.architectures for row in result.rows):
            print_summary(result, console, files=folder is not None)
        if result.architectures:
            print_verdicts(result, console)
    if folder is not None and has_page(result):
        # Whole, so that it can be opened: a path that's broken into lines is two for a terminal.
        console.print(Text(f"Page: {printable(str(folder / PAGE))}"), soft_wrap=True)

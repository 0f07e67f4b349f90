"""One screen: what was wrong, what was changed, what that bought, what is left."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.text import Text

from conrepair.repair.result import RepairResult
from conrepair.repair.verify import Agreement
from conrepair.report.localization.words import number, shortened

__all__ = ["print_repair"]

_MOST, _WIDTH = 8, 200


def print_repair(result: RepairResult, console: Console, folder: Path | None) -> None:
    """Show what became of a repair.

    Args:
        result: Of a target.
        console: Where to.
        folder: Where the files are; None where none were written.
    """
    found, left = len(result.before.faults), len(result.after.faults)
    if not found:
        console.print(Text.assemble(("nothing to repair", "bold green"), f": {result.before.reason}"))
        return
    word, style = ("repaired", "bold green") if not left else ("not repaired", "bold red")
    if left and result.edits:
        word, style = "partly repaired", "bold yellow"
    console.print(Text.assemble((word, style), f": {found} found, {left} left, {result.tried} candidates tried"))
    for edit in result.edits[:_MOST]:
        console.print(Text(f"  {shortened(edit, _WIDTH)}"))
    if len(result.edits) > _MOST:
        console.print(Text(f"  and {len(result.edits) - _MOST} more edits", style="dim"))
    samples = result.unseen_after.samples
    console.print(
        Text(f"on {samples} samples: {_told(result.unseen_before)} before, {_told(result.unseen_after)} now")
    )
    for fault in result.after.faults[:_MOST]:
        layer = (fault.target_layers or fault.source_layers or ("?",))[0]
        console.print(
            Text.assemble(("left: ", "bold"), f"{fault.kind.value} at {layer}: ", fault.evidence[0][:_WIDTH])
        )
    if not result.in_time:
        console.print(Text("the time was up before the search ended; --seconds gives it more", style="yellow"))
    if folder is not None:
        console.print(Text.assemble(("written: ", "bold"), str(folder)))


def _told(agreement: Agreement) -> str:
    error = f"outputs differ by {number(agreement.error)}"
    if agreement.top1_differing is None:
        return error
    return f"{agreement.top1_differing} answers differ ({error})"

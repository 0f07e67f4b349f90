"""A result on the screen: the document, or tables."""

from __future__ import annotations

from pathlib import Path

from conrepair.report.console import print_result
from conrepair.report.result import AuditResult
from conrepair.report.saved import result_text
from conrepair.runtime.progress import output_console, say

__all__ = ["tell"]


def tell(result: AuditResult, *, as_json: bool, folder: Path | None) -> None:
    """Show a result.

    Args:
        result: Of a verb.
        as_json: Whether as the document.
        folder: Where its files are; None: there are none.
    """
    if as_json:
        say(result_text(result))
    else:
        print_result(result, output_console(), folder)

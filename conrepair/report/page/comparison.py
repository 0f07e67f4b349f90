"""Render comparison.html: what changed between two runs, without any script."""

from __future__ import annotations

from conrepair.report.changes.changes import Changes, Sort
from conrepair.report.page.rendering import policy, rendered, text_of

__all__ = ["COMPARISON", "comparison_html"]

COMPARISON = "comparison.html"

_STATES = {
    Sort.WORSE: "wrong",
    Sort.NEW: "warning",
    Sort.GONE: "unknown",
    Sort.BETTER: "right",
    Sort.SAME: "unknown",
}


def comparison_html(changes: Changes) -> str:
    """The page of two runs.

    Args:
        changes: Between them.

    Returns:
        A self-contained HTML document.
    """
    return rendered("comparison.html", changes=changes, states=_STATES, style=text_of("style.css"), policy=policy())

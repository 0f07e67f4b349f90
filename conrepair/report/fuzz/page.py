"""findings.html: self-contained, without scripts, everything escaped."""

from __future__ import annotations

from conrepair.report.fuzz.summary import Summary
from conrepair.report.page.rendering import rendered
from conrepair.runtime.standing import Standing

__all__ = ["findings_page"]


def findings_page(summary: Summary, *, live: bool = False, standing: Standing | None = None) -> str:
    """The page.

    Args:
        summary: Of a campaign.
        live: Whether the campaign goes on: the page loads itself anew.
        standing: How far it is on other machines.
    """
    part = None if standing is None else rendered("part_standing.html", standing=standing)
    return rendered("findings.html", summary=summary, live=live, standing=part) + "\n"

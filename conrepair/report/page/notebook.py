"""What a notebook shows of a result: the first screen of its page, without any script."""

from __future__ import annotations

import dataclasses

from conrepair.report.page.overview import overview
from conrepair.report.page.rendering import rendered, text_of
from conrepair.report.result import AuditResult

__all__ = ["notebook_html"]


def notebook_html(result: AuditResult) -> str:
    """A piece of HTML that stands by itself; all of it is its own, so nothing is asked of a network.

    Args:
        result: Of any verb that judges a target, or of an audit.
    """
    told = overview(result)
    unlinked = tuple(dataclasses.replace(item, anchor="") for item in told.guilty)  # what they lead to isn't here
    told = dataclasses.replace(told, guilty=unlinked)
    return rendered("notebook.html", overview=told, style=text_of("notebook.css"))

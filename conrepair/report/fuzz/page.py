"""findings.html: self-contained, without scripts, everything escaped."""

from __future__ import annotations

import functools

import jinja2

from conrepair.report.fuzz.summary import Summary

__all__ = ["findings_page"]


def findings_page(summary: Summary, *, live: bool = False) -> str:
    """The page.

    Args:
        summary: Of a campaign.
        live: Whether the campaign goes on: the page loads itself anew.
    """
    return _environment().get_template("findings.html").render(summary=summary, live=live) + "\n"


@functools.cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader(__package__, "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

"""Render report.html: templates with everything escaped, styles and scripts within, no request to any network."""

from __future__ import annotations

from conrepair.report.page.layers import targets_data
from conrepair.report.page.overview import overview
from conrepair.report.page.rendering import policy, rendered, text_of
from conrepair.report.page.sections import matrix_of, provenance, sections
from conrepair.report.readable import OURS, Readable
from conrepair.report.result import AuditResult
from conrepair.report.target_rows import name_of

__all__ = ["page_html"]

_OWN = ("dom", "tables", "plot", "targets", "graph", "activations", "layer", "main")
_SCRIPTS = ("vendor/uPlot.iife.min.js", "vendor/dagre.min.js", *(f"script/{name}.js" for name in _OWN))
_STYLES = ("vendor/uPlot.min.css", "style.css")
_LICENCES = ("vendor/uPlot.LICENSE", "vendor/dagre.LICENSE")


def page_html(result: AuditResult, readable: Readable = OURS) -> str:
    """The page of a run.

    Args:
        result: Of any verb, or of an audit; what it says is all that's used, but for photos.
        readable: Where these are looked for.

    Returns:
        A self-contained HTML document.
    """
    scripts = [text_of(name) for name in _SCRIPTS]
    shown = sections(result, readable)
    return rendered(
        "page.html",
        result=result,
        overview=overview(result),
        matrix=matrix_of(result),
        sections=shown,
        provenance=provenance(result),
        name_of=name_of,
        data={section.anchor: section.data for section in shown if section.data},
        targets=targets_data(result),
        styles=[text_of(name) for name in _STYLES],
        scripts=scripts,
        policy=policy(scripts),
        licences=[text_of(name) for name in _LICENCES],
    )

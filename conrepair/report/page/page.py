"""Render report.html: templates with everything escaped, styles and scripts within, no request to any network."""

from __future__ import annotations

import base64
import functools
import hashlib
from importlib import resources
from typing import Any

import jinja2

from conrepair.report.page.layers import targets_data
from conrepair.report.page.overview import overview, state_of
from conrepair.report.page.sections import matrix_of, provenance, sections
from conrepair.report.result import AuditResult
from conrepair.runtime.words import number

__all__ = ["PAGE", "page_html"]

PAGE = "report.html"

_OWN = ("dom", "tables", "plot", "targets", "graph", "activations", "layer", "main")
_SCRIPTS = ("vendor/uPlot.iife.min.js", "vendor/dagre.min.js", *(f"script/{name}.js" for name in _OWN))
_STYLES = ("vendor/uPlot.min.css", "style.css")
_LICENCES = ("vendor/uPlot.LICENSE", "vendor/dagre.LICENSE")


def page_html(result: AuditResult) -> str:
    """The page of a run.

    Args:
        result: Of any verb, or of an audit; what it says is all that's used.

    Returns:
        A self-contained HTML document.
    """
    scripts = [_text(name) for name in _SCRIPTS]
    shown = sections(result)
    return (
        _templates()
        .get_template("page.html")
        .render(
            result=result,
            overview=overview(result),
            matrix=matrix_of(result),
            sections=shown,
            provenance=provenance(result),
            data={section.anchor: section.data for section in shown if section.data},
            targets=targets_data(result),
            styles=[_text(name) for name in _STYLES],
            scripts=scripts,
            policy=_policy(scripts),
            licences=[_text(name) for name in _LICENCES],
            state_of=state_of,
        )
    )


def _policy(scripts: list[str]) -> str:
    """What the browser may do: run these scripts and no others, load nothing from anywhere."""
    hashes = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    nothing = "default-src 'none'; base-uri 'none'; form-action 'none'"
    return f"{nothing}; style-src 'unsafe-inline'; img-src data:; script-src {allowed}"


@functools.cache
def _text(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8").strip()


@functools.cache
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__, "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["figure"] = _figure
    return environment


def _figure(value: Any) -> str:
    return number(float(value))

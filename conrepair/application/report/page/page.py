"""Render report.html, comparison.html and what a notebook shows: styles and scripts within, no request anywhere."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from conrepair.application.report.causes import Cause, causes_of
from conrepair.application.report.changes.changes import Changes, Sort
from conrepair.application.report.page.files import Link, run_files
from conrepair.application.report.page.layers import targets_data
from conrepair.application.report.page.matrix import matrix_of
from conrepair.application.report.page.overview import overview
from conrepair.application.report.page.rendering import policy, rendered, section_of, text_of
from conrepair.application.report.page.sections import provenance, sections
from conrepair.application.report.result import AuditResult
from conrepair.application.report.told import OF_FILES, name_of, target_rows
from conrepair.ground.runtime.words import shortened

COMPARISON = "comparison.html"

_STATES = {Sort.WORSE: "wrong", Sort.NEW: "warning", Sort.GONE: "unknown", Sort.BETTER: "right", Sort.SAME: "unknown"}
_OWN = ("dom", "copying", "tables", "matrix", "plot", "targets", "graph", "scatter", "activations", "layer", "main")
_LIBRARIES = ("uPlot.iife.min.js", "dagre.min.js", "cytoscape.min.js")
_SCRIPTS = (*(f"vendor/{name}" for name in _LIBRARIES), *(f"script/{name}.js" for name in _OWN))
_STYLES = ("vendor/uPlot.min.css", "style.css")
_TITLE = 120  # letters
_LICENCES = ("vendor/uPlot.LICENSE", "vendor/dagre.LICENSE", "vendor/cytoscape.LICENSE")


def page_html(result: AuditResult, photos: Sequence[Path] | None = None) -> str:
    """The page of a run.

    Args:
        result: Of any verb, or of an audit; what it says is all that's used, but for photos.
        photos: Folders that are looked into for these; None: those of the configuration.

    Returns:
        A self-contained HTML document.
    """
    shown, told, models = sections(result, photos), overview(result), _models(result)
    drawn = any(section.data for section in shown)  # else no library has anything to draw
    scripts = [text_of(name) for name in _SCRIPTS if drawn or not name.startswith("vendor/")]
    return rendered(
        "page.html",
        result=result,
        title=f"{told.word}: {' against '.join(models[::-1]) or _of_all(result)}",
        models=models,
        overview=told,
        causes=_causes(result),
        anchor_of=lambda row: section_of(row, result),
        link=Link,
        files=run_files(result),
        matrix=matrix_of(result),
        sections=shown,
        provenance=provenance(result),
        name_of=name_of,
        data={section.anchor: section.data for section in shown if section.data},
        targets=targets_data(result),
        styles=[text_of(name) for name in _STYLES],
        scripts=scripts,
        policy=policy(scripts),
        licences=[text_of(name) for name in _LICENCES if drawn],
    )


def _models(result: AuditResult) -> tuple[str, ...]:
    """The names of the original and the converted model, where a run is of these two; none where it's of more."""
    targets = target_rows(result)
    sides = [row for row in result.rows if row.kind == "reference"][:1] + targets
    return tuple(name_of(row, result) for row in sides) if len(targets) == 1 and result.kind in OF_FILES else ()


def _of_all(result: AuditResult) -> str:
    """The name of a run of several models, and theirs."""
    return shortened(f"{result.name} ({', '.join(dict.fromkeys(row.model for row in result.rows))})", _TITLE)


def _causes(result: AuditResult) -> tuple[Cause, ...]:
    """What is wrong, where it's told by causes: of several targets."""
    return causes_of(result) if len(target_rows(result)) > 1 else ()


def comparison_html(changes: Changes) -> str:
    """The page of two runs.

    Args:
        changes: Between them.

    Returns:
        A self-contained HTML document.
    """
    return rendered("comparison.html", changes=changes, states=_STATES, style=text_of("style.css"), policy=policy())


def notebook_html(result: AuditResult) -> str:
    """A piece of HTML that stands by itself; all of it is its own, so nothing is asked of a network.

    Args:
        result: Of any verb that judges a target, or of an audit.
    """
    told = overview(result)
    unlinked = tuple(dataclasses.replace(item, anchor="") for item in told.guilty)  # what they lead to isn't here
    repairs = tuple(dataclasses.replace(item, files=()) for item in told.repairs)
    told = dataclasses.replace(told, guilty=unlinked, repairs=repairs)
    return rendered(
        "notebook.html",
        overview=told,
        causes=_causes(result),
        anchor_of=lambda _: "",
        link=Link,
        style=text_of("notebook.css"),
    )

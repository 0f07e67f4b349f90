"""Which rows of a run are its targets, and what a person calls them: the same for pages, programs and comparisons."""

from __future__ import annotations

from pathlib import Path

from conrepair.evaluate.verdict import Verdict
from conrepair.report.result import AuditResult, Row
from conrepair.runtime.workers import NO_DEVICE

__all__ = ["OF_FILES", "is_target", "name_of", "target_rows", "without_device", "word_of"]

OF_FILES = {"compare", "localize", "repair"}
"""Kinds of runs of files that were named, one by one."""


def target_rows(result: AuditResult) -> list[Row]:
    """What was held against something else, or should have been, in the run's order.

    Args:
        result: Of any verb, or of an audit.
    """
    return list(filter(is_target, result.rows))


def is_target(row: Row) -> bool:
    """Whether a row is one of them: a source on another backend is, too."""
    return row.kind != "reference" or row.verdict is not None or row.problem is not None


def name_of(row: Row, result: AuditResult) -> str:
    """What a person calls a row's model: where two files were given, its file.

    Args:
        row: Of the run.
        result: The run.
    """
    if result.kind in OF_FILES and row.ran.artifact is not None:
        return Path(row.ran.artifact.path).name
    return row.label


def word_of(row: Row, verdict: Verdict | None) -> str:
    """A verdict in a word, or what there is in its place.

    Args:
        row: That it's of.
        verdict: The row's, or one by its layers or after its repair.
    """
    if verdict is not None:
        return str(verdict)
    if row.problem is None:
        return "not judged"
    return "no device" if without_device(row) else "error"


def without_device(row: Row) -> bool:
    """Whether what it was to run on isn't there."""
    return row.problem is not None and row.problem.kind == NO_DEVICE

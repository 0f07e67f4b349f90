"""Places on the page that others lead to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from conrepair.localization.result import LayerRow, Localization
from conrepair.report.result import AuditResult, Row

__all__ = ["anchor_of", "in_order", "layer_place", "name_of", "section_of", "targets_of"]

_OF_FILES = {"compare", "localize", "repair"}


def section_of(row: Row, result: AuditResult) -> str:
    """Of a row: it's the same however often the page is made."""
    return f"row-{result.rows.index(row)}"


def targets_of(result: AuditResult) -> list[Row]:
    """What was held against something else, or should have been: a source on another backend, too."""
    return [row for row in result.rows if row.kind != "reference" or row.verdict or row.problem]


def name_of(row: Row, result: AuditResult) -> str:
    """What a person calls a row's model: where two files were given, its file."""
    if result.kind in _OF_FILES and row.ran.artifact is not None:
        return Path(row.ran.artifact.path).name
    return row.label


def in_order(found: Localization) -> list[LayerRow]:
    """Pairs of tensors in the source's order: the order of plot, graph and table."""
    return sorted(found.layers, key=lambda layer: layer.order)


def layer_place(found: Localization, wanted: Callable[[LayerRow], bool]) -> int | None:
    """Place of the first pair of a sort, in that order; None where there's none."""
    return next((place for place, layer in enumerate(in_order(found)) if wanted(layer)), None)


def anchor_of(section: str, place: int | None) -> str:
    """Where a layer is shown; "" for one that isn't."""
    return "" if place is None else f"{section}-layer-{place}"

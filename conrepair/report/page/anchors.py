"""Places on the page that others lead to."""

from __future__ import annotations

from conrepair.localization.result import LayerRow, Localization
from conrepair.report.result import AuditResult, Row

__all__ = ["anchor_of", "in_order", "section_of"]


def section_of(row: Row, result: AuditResult) -> str:
    """Of a row of this very result: it's the same however often the page is made."""
    return f"row-{result.places[id(row)]}"


def in_order(found: Localization) -> list[LayerRow]:
    """Pairs of tensors in the source's order: the order of plot, graph and table."""
    return sorted(found.layers, key=lambda layer: layer.order)


def anchor_of(section: str, place: int | None) -> str:
    """Where a layer is shown; "" for one that isn't."""
    return "" if place is None else f"{section}-layer-{place}"

"""Places on the page that others lead to."""

from __future__ import annotations

from collections.abc import Callable

from conrepair.localization.result import LayerRow, Localization
from conrepair.report.result import AuditResult, Row

__all__ = ["anchor_of", "in_order", "layer_place", "section_of"]


def section_of(row: Row, result: AuditResult) -> str:
    """Of a row: it's the same however often the page is made."""
    return f"row-{result.rows.index(row)}"


def in_order(found: Localization) -> list[LayerRow]:
    """Pairs of tensors in the source's order: the order of plot, graph and table."""
    return sorted(found.layers, key=lambda layer: layer.order)


def layer_place(found: Localization, wanted: Callable[[LayerRow], bool]) -> int | None:
    """Place of the first pair of a sort, in that order; None where there's none."""
    return next((place for place, layer in enumerate(in_order(found)) if wanted(layer)), None)


def anchor_of(section: str, place: int | None) -> str:
    """Where a layer is shown; "" for one that isn't."""
    return "" if place is None else f"{section}-layer-{place}"

"""A localization as a table: one row per tensor pair."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from conrepair.application.report.csv_text import csv_text
from conrepair.diagnosis.localization.result import LayerRow

_NODES = {"source_nodes", "target_nodes"}
_FIELDS = (item.name for item in dataclasses.fields(LayerRow) if item.name not in {"order", *_NODES})
COLUMNS = ("order", *_FIELDS, "introduced_sqnr_db", "full_run_sqnr_db")


def layers_csv(layers: Iterable[LayerRow]) -> str:
    """All rows in the source's order; infinite and undefined errors are `inf` and `nan`, which CSV readers know."""
    rows = sorted(layers, key=lambda item: item.order)
    return csv_text(COLUMNS, ([getattr(row, column) for column in COLUMNS] for row in rows))

"""layers.csv: one row per pair of tensors."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Iterable

from conrepair.localization.result import LayerRow

__all__ = ["COLUMNS", "layers_csv"]

_NODES = {"source_nodes", "target_nodes"}
COLUMNS = ("order", *(item.name for item in dataclasses.fields(LayerRow) if item.name not in {"order", *_NODES}))


def layers_csv(layers: Iterable[LayerRow]) -> str:
    """All rows in the source's order; infinite and undefined errors are `inf` and `nan`, which CSV readers know."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in sorted(layers, key=lambda item: item.order):
        writer.writerow([_cell(getattr(row, column)) for column in COLUMNS])
    return stream.getvalue()


def _cell(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value

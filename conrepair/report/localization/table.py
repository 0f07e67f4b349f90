"""layers.csv: one row per pair of tensors; ranking.csv: one per layer that was ranked by its suspiciousness."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from conrepair.localization.result import LayerRow
from conrepair.localization.suspiciousness import LayerSuspicion, Suspiciousness
from conrepair.report.csv_text import csv_text

__all__ = ["COLUMNS", "layers_csv", "ranking_csv"]

_NODES = {"source_nodes", "target_nodes"}
COLUMNS = ("order", *(item.name for item in dataclasses.fields(LayerRow) if item.name not in {"order", *_NODES}))

_RANKED = ("rank", "target_layer", "source_layer", "share", "rank_sum", "elements", "params_mean_diff", "not_tested")


def layers_csv(layers: Iterable[LayerRow]) -> str:
    """All rows in the source's order; infinite and undefined errors are `inf` and `nan`, which CSV readers know."""
    rows = sorted(layers, key=lambda item: item.order)
    return csv_text(COLUMNS, ([getattr(row, column) for column in COLUMNS] for row in rows))


def ranking_csv(ranking: Suspiciousness) -> str:
    """The most suspicious first; layers that no test applies to come before them, without a rank."""
    untested = (_ranked(None, layer) for layer in ranking.incomparable)
    return csv_text(_RANKED, (*untested, *(_ranked(rank, layer) for rank, layer in enumerate(ranking.layers, 1))))


def _ranked(rank: int | None, layer: LayerSuspicion) -> list[object]:
    measured = (layer.share, layer.rank_sum, layer.tests[0].elements) if layer.tests else (None, None, None)
    return [rank, layer.target_layer, layer.source_layer, *measured, layer.params_mean_diff, layer.reason]

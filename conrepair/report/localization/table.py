"""layers.csv: one row per pair of tensors; ranking.csv: one per layer that was ranked by its suspiciousness."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Iterable

from conrepair.localization.result import LayerRow
from conrepair.localization.suspiciousness import Suspiciousness

__all__ = ["COLUMNS", "layers_csv", "ranking_csv"]

_NODES = {"source_nodes", "target_nodes"}
COLUMNS = ("order", *(item.name for item in dataclasses.fields(LayerRow) if item.name not in {"order", *_NODES}))

_RANKED = ("rank", "target_layer", "source_layer", "share", "rank_sum", "elements", "params_mean_diff", "not_tested")


def layers_csv(layers: Iterable[LayerRow]) -> str:
    """All rows in the source's order; infinite and undefined errors are `inf` and `nan`, which CSV readers know."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in sorted(layers, key=lambda item: item.order):
        writer.writerow([_cell(getattr(row, column)) for column in COLUMNS])
    return stream.getvalue()


def ranking_csv(ranking: Suspiciousness) -> str:
    """The most suspicious first; layers that no test applies to come before them, without a rank."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(_RANKED)
    ranks = [*("" for _ in ranking.incomparable), *range(1, len(ranking.layers) + 1)]
    for rank, layer in zip(ranks, (*ranking.incomparable, *ranking.layers), strict=True):
        measured = (layer.share, layer.rank_sum, layer.tests[0].elements) if layer.tests else ("", "", "")
        mean = "" if layer.params_mean_diff is None else layer.params_mean_diff
        writer.writerow([rank, layer.target_layer, layer.source_layer, *measured, mean, layer.reason or ""])
    return stream.getvalue()


def _cell(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value

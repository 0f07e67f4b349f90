"""The files of one localization, as texts."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable

from conrepair.application.report.csv_text import csv_text
from conrepair.application.report.result import LocalizedStep
from conrepair.diagnosis.localization.ranking.suspiciousness import (
    LayerSuspicion,
    Suspiciousness,
    classic_layer_analysis,
)
from conrepair.diagnosis.localization.result import LayerRow

# layers.csv: one row per pair of tensors; ranking.csv: one per layer that was ranked by its suspiciousness.

_NODES = {"source_nodes", "target_nodes"}
_FIELDS = (item.name for item in dataclasses.fields(LayerRow) if item.name not in {"order", *_NODES})
COLUMNS = ("order", *_FIELDS, "introduced_sqnr_db", "full_run_sqnr_db")

_RANKED = ("rank", "target_layer", "source_layer", "share", "rank_sum", "elements", "params_mean_diff", "not_tested")


def layers_csv(layers: Iterable[LayerRow]) -> str:
    """All rows in the source's order; infinite and undefined errors are `inf` and `nan`, which CSV readers know."""
    rows = sorted(layers, key=lambda item: item.order)
    return csv_text(COLUMNS, ([getattr(row, column) for column in COLUMNS] for row in rows))


def _ranking_csv(ranking: Suspiciousness) -> str:
    """The most suspicious first; layers that no test applies to come before them, without a rank."""
    untested = (_ranked(None, layer) for layer in ranking.incomparable)
    return csv_text(_RANKED, (*untested, *(_ranked(rank, layer) for rank, layer in enumerate(ranking.layers, 1))))


def _ranked(rank: int | None, layer: LayerSuspicion) -> list[object]:
    measured = (layer.share, layer.rank_sum, layer.tests[0].elements) if layer.tests else (None, None, None)
    return [rank, layer.target_layer, layer.source_layer, *measured, layer.params_mean_diff, layer.reason]


def step_texts(step: LocalizedStep) -> dict[str, str]:
    """layers.csv; and of layers that were ranked by their suspiciousness, ranking.csv.

    layer_analysis.json has that ranking as ConRepAIr writes it.

    Args:
        step: What was compared, and what was found.

    Returns:
        Texts by name.
    """
    result = step.localization
    texts = {"layers.csv": layers_csv(result.layers)}
    if result.suspiciousness is not None:
        texts["ranking.csv"] = _ranking_csv(result.suspiciousness)
        analysis = classic_layer_analysis(result.suspiciousness)
        texts["layer_analysis.json"] = json.dumps(analysis, indent=2, allow_nan=False) + "\n"
    return texts

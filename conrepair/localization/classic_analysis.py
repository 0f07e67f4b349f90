"""The layer analysis in the form that ConRepAIr writes it, as JSON that other programs can read."""

from __future__ import annotations

import math
from typing import Any

from conrepair.localization.suspiciousness import LayerSuspicion, Suspiciousness


def classic_layer_analysis(suspiciousness: Suspiciousness) -> list[dict[str, Any]]:
    """Layers as plain values for `json.dumps`, the most suspicious first, those that could not be tested last.

    ConRepAIr writes a JSON text that holds a Python text. `elems_percentage` is its share of elements with a p-value
    below the significance, the mean over the iterations; what is left after the correction stands beside it.

    Args:
        suspiciousness: Of `rank_layers`.

    Returns:
        For each layer: source_layer, target_layer, elems_percentage, elems_percentage_corrected, params_mean_diff
        (null where it isn't known), ranks by iteration ("1", "2", ...), rank (its place), and reason (null when it
        was tested).
    """
    tested = [_entry(layer, place) for place, layer in enumerate(suspiciousness.layers, 1)]
    return [*tested, *(_entry(layer, None) for layer in suspiciousness.incomparable)]


def _entry(layer: LayerSuspicion, place: int | None) -> dict[str, Any]:
    percentages: list[float | None] = [None, None]
    if layer.tests:
        counts = [(test.uncorrected, test.significant, max(test.elements, 1)) for test in layer.tests]
        percentages = [100 * sum(count[which] / count[2] for count in counts) / len(counts) for which in (0, 1)]
    return {
        "source_layer": layer.source_layer,
        "target_layer": layer.target_layer,
        "elems_percentage": percentages[0],
        "elems_percentage_corrected": percentages[1],
        "params_mean_diff": _finite(layer.params_mean_diff),
        "ranks": {str(iteration): _finite(rank) for iteration, rank in enumerate(layer.ranks, 1)},
        "rank": place,
        "reason": layer.reason,
    }


def _finite(value: float | None) -> float | None:
    """JSON has no NaN and no infinity."""
    return value if value is not None and math.isfinite(value) else None

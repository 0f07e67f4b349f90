"""Node data for Model Explorer: the introduced error of every layer, shown on the model's graph."""

from __future__ import annotations

import math
from typing import Any, Literal

from conrepair.frameworks.model import Model
from conrepair.localization.result import LayerRow, Localization
from conrepair.report.localization.overlay_nodes import node_ids

__all__ = ["Side", "overlay"]

Side = Literal["source", "target"]

_GUILTY, _ABOVE, _BELOW = "#d7301f", "#ffe08a", "#e3f1e4"
_INFINITE = 1e30  # JSON has no infinity, and Model Explorer adds up values: text would spoil its statistics


def overlay(model: Model, result: Localization, side: Side) -> dict[str, Any] | None:
    """The node data of one model.

    It names no graph, so Model Explorer lays it over the one that is shown: its readers call graphs differently.

    Args:
        model: Of that side.
        result: What was found.
        side: Whose names to use.

    Returns:
        `results` by node; None for a model that Model Explorer doesn't open, or whose file is gone.
    """
    ids = node_ids(model)
    if ids is None:
        return None
    worst: dict[str, LayerRow] = {}
    for row in result.layers:
        node = ids.of(*_names(row, side))
        if node is not None and (node not in worst or _rank(row) > _rank(worst[node])):
            worst[node] = row
    results = {node: {"value": _value(row), "bgColor": _colour(row)} for node, row in worst.items()}
    return {"name": "introduced relative error", "results": results}


def _names(row: LayerRow, side: Side) -> tuple[str, str]:
    if side == "source":
        return row.source_tensor, row.source_layer
    return row.target_tensor, row.target_layer


def _rank(row: LayerRow) -> tuple[bool, float]:
    return row.guilty, _value(row)


def _value(row: LayerRow) -> float:
    error = row.introduced_error
    return float(f"{error:.3g}") if math.isfinite(error) else _INFINITE


def _colour(row: LayerRow) -> str:
    if row.guilty:
        return _GUILTY
    return _BELOW if row.introduced_error <= row.noise_floor else _ABOVE

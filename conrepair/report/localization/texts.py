"""The files of one localization, as texts."""

from __future__ import annotations

import json

from conrepair.frameworks.model import Model
from conrepair.localization.classic_analysis import classic_layer_analysis
from conrepair.report.localization.about import About, has_overlay
from conrepair.report.localization.plot import error_plot
from conrepair.report.localization.table import layers_csv, ranking_csv
from conrepair.report.readable import Readable
from conrepair.report.result import LocalizedStep

__all__ = ["step_texts"]


def step_texts(step: LocalizedStep, about: About, readable: Readable) -> dict[str, str]:
    """layers.csv, error.svg, and Model Explorer's overlays of models that it opens.

    Where layers were ranked by their suspiciousness, ranking.csv has that, and layer_analysis.json as ConRepAIr
    writes it.

    Args:
        step: What was found.
        about: What was localized.
        readable: Which models are read for overlays.

    Returns:
        Texts by name.
    """
    # It reads ONNX files, whose library takes half a second to import.
    from conrepair.report.localization.overlay import Side, overlay

    result = step.localization
    texts = {"layers.csv": layers_csv(result.layers), "error.svg": error_plot(result)}
    if result.suspiciousness is not None:
        texts["ranking.csv"] = ranking_csv(result.suspiciousness)
        analysis = classic_layer_analysis(result.suspiciousness)
        texts["layer_analysis.json"] = json.dumps(analysis, indent=2, allow_nan=False) + "\n"
    sides: tuple[tuple[Side, Model], ...] = (("source", about.source), ("target", about.target))
    for side, model in sides:
        data = overlay(model, result, side) if has_overlay(model) and readable.knows(model) else None
        if data is not None:
            texts[f"model_explorer_{side}.json"] = json.dumps(data, indent=2, allow_nan=False) + "\n"
    return texts

"""Write the files of a localization."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from conrepair.frameworks.model import Model
from conrepair.localization.classic_analysis import classic_layer_analysis
from conrepair.localization.result import Localization
from conrepair.report.folders import check_replaceable
from conrepair.report.localization.about import About
from conrepair.report.localization.document import localization_document
from conrepair.report.localization.plot import error_plot
from conrepair.report.localization.table import layers_csv
from conrepair.runtime.files import put_text, whole_output

__all__ = ["DOCUMENT", "check_localization_folder", "write_localization"]

DOCUMENT = "localization.json"


def write_localization(
    result: Localization, folder: Path, about: About, more: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Write localization.json, layers.csv, error.svg and Model Explorer's overlays, all of them or none.

    Where layers were ranked by their suspiciousness, layer_analysis.json has that as ConRepAIr writes it.

    Args:
        result: What was found.
        folder: Appears whole; that of an earlier localization is replaced.
        about: What was localized.
        more: Other files, as texts by name.

    Raises:
        UsageError: if the folder is something else than an earlier localization's, or holds one of the models.
        StorageError: if it can't be written.
    """
    check_localization_folder(folder, (about.source.path, about.target.path))
    files = {**_files(result, about), **more}
    with whole_output(folder) as temporary:
        temporary.mkdir()
        for name, text in files.items():
            put_text(temporary / name, text)


def _files(result: Localization, about: About) -> Mapping[str, str]:
    # It reads ONNX files, whose library takes half a second to import.
    from conrepair.report.localization.overlay import Side, overlay

    document = localization_document(result, about)
    texts = {
        DOCUMENT: document.model_dump_json(indent=2) + "\n",
        "layers.csv": layers_csv(result.layers),
        "error.svg": error_plot(result),
    }
    if result.suspiciousness is not None:
        analysis = classic_layer_analysis(result.suspiciousness)
        texts["layer_analysis.json"] = json.dumps(analysis, indent=2, allow_nan=False) + "\n"
    sides: tuple[tuple[Side, Model], ...] = (("source", about.source), ("target", about.target))
    for side, model in sides:
        data = overlay(model, result, side)
        if data is not None:
            texts[f"model_explorer_{side}.json"] = json.dumps(data, indent=2, allow_nan=False) + "\n"
    return texts


def check_localization_folder(folder: Path, inputs: Iterable[str | Path]) -> None:
    """Make sure that replacing a localization's folder loses nothing of the user's.

    Args:
        folder: Of the localization.
        inputs: Files and folders that it reads.

    Raises:
        UsageError: if the folder is something else than an earlier localization's, or holds an input.
    """
    check_replaceable(folder, DOCUMENT, "localization", inputs)

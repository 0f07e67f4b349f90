"""ONNX to ONNX: the rewrites that come before converters, as a step that can be audited itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conrepair.formats.converters.base import Converter, Option, comma_parts
from conrepair.formats.models.model import Model
from conrepair.formats.onnx.passes.wants import Wants

_FILE = "model.onnx"


def _convert(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
    from conrepair.formats.onnx.passes.files import save
    from conrepair.formats.onnx.passes.normalise import normalise

    opset = options["opset"]
    wants = Wants(
        lowest=opset or 1,
        highest=opset or None,
        expand=frozenset(comma_parts(options["expand"])),
        fold=options["fold"],
        identities=options["identities"],
        batch=options["batch"] or None,
        explicit_pads=options["explicit_pads"],
        rewrites=frozenset(comma_parts(options["rewrite"])),
    )
    save(normalise(model.path, wants, model.inputs), folder / _FILE)
    return _FILE


CONVERTER = Converter(
    name="onnx-normalise",
    source="onnx",
    target="onnx",
    distributions=("onnx", "onnx-ir", "onnxruntime"),
    convert=_convert,
    options={
        "opset": Option(0, "ONNX opset to lower or raise the graph to; 0 leaves it", alternatives=(0, 17, 21)),
        "fold": Option(True, "compute what depends on constants only"),
        "identities": Option(False, "keep Identity nodes", alternatives=(False, True)),
        "expand": Option("", "operators, separated by commas, to replace by ONNX's definition of them"),
        "explicit_pads": Option(False, "write paddings as numbers", alternatives=(False, True)),
        "rewrite": Option("", "rewrites, separated by commas, of docs/converters.md"),
        "batch": Option(0, "number to write for a symbolic batch; 0 leaves it"),
    },
    automatic=False,
)

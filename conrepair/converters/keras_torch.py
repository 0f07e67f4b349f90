"""Keras to PyTorch by Keras's own PyTorch backend, with no ONNX between.

Keras takes one backend a process, and ours is TensorFlow; so another process loads the model and exports it. Not
automatic: that backend computes some layers otherwise (average pooling whose "same" padding isn't symmetric).
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conrepair.converters.base import Converter
from conrepair.frameworks.model import Model, to_json
from conrepair.runtime.outside.scripts import run_script

__all__ = ["CONVERTER"]

_SCRIPT = Path(__file__).parent / "scripts" / "keras_torch.py"


def _convert(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
    with tempfile.TemporaryDirectory(prefix=".scratch-", dir=folder) as scratch:
        arguments = {"model": to_json(model), "folder": str(folder)}
        variables = {"KERAS_BACKEND": "torch"}
        value = run_script(_SCRIPT, arguments, Path(scratch), what="Keras on PyTorch", variables=variables)
    return str(value["file"])


CONVERTER = Converter(
    name="keras-torch",
    source="keras",
    target="torch",
    distributions=("keras", "torch"),
    convert=_convert,
    automatic=False,
)

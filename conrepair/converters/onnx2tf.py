"""ONNX to a SavedModel, or to TFLite in float, by onnx2tf, which runs in an environment of its own.

It gets a copy: it writes to its input file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conrepair.converters.base import Converter, Option
from conrepair.frameworks.identity import copy_model
from conrepair.frameworks.model import Model
from conrepair.runtime.outside.scripts import run_script

__all__ = ["SAVED_MODEL", "TFLITE"]

_SCRIPT = Path(__file__).parent / "scripts" / "onnx_tensorflow.py"


def _converter(name: str, target: str, file: str) -> Converter:
    """The converter to "tensorflow" or "tflite".

    Args:
        name: The converter's.
        target: The framework.
        file: Name of the file or folder that it writes.
    """

    def convert(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
        with tempfile.TemporaryDirectory(prefix=".scratch-", dir=folder) as scratch:
            copy = Path(scratch) / "model.onnx"
            copy_model(Path(model.path), copy)
            arguments = {"model": str(copy), "output": str(folder / file), "target": target, **options}
            run_script(_SCRIPT, arguments, Path(scratch), what="onnx2tf", environment_name="onnx2tf")
        return file

    return Converter(
        name=name,
        source="onnx",
        target=target,
        distributions=("onnx2tf", "tensorflow", "tf-keras", "onnx", "onnxsim", "onnxruntime"),
        convert=convert,
        options={
            "batch": Option(0, "the batch size that the result has, where the network's is symbolic; 0 leaves it"),
            "simplify": Option(True, "simplify the graph by onnxsim first", alternatives=(True, False)),
        },
        automatic=False,
        environment="onnx2tf",
    )


SAVED_MODEL = _converter("onnx-savedmodel-onnx2tf", "tensorflow", "saved_model")
TFLITE = _converter("onnx-tflite-onnx2tf", "tflite", "model.tflite")

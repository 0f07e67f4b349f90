"""What the two converters of onnx2tf have in common; the tool runs in an environment of its own.

It gets a copy: it writes to its input file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from conrepair.converters.base import Converter, Option
from conrepair.frameworks.identity import copy_model
from conrepair.frameworks.model import Model
from conrepair.runtime.outside.scripts import run_script

__all__ = ["onnx2tf_converter"]

_SCRIPT = Path(__file__).parent / "scripts" / "onnx_tensorflow.py"


def onnx2tf_converter(name: str, target: str, file: str) -> Converter:
    """The converter to "tensorflow" or "tflite".

    Args:
        name: The converter's.
        target: The framework.
        file: Name of the file or folder that it writes.
    """
    return Converter(
        name=name,
        source="onnx",
        target=target,
        distributions=("onnx2tf", "tensorflow", "tf-keras", "onnx", "onnxsim", "onnxruntime"),
        convert=_conversion(target, file),
        options={
            "batch": Option(0, "the batch size that the result has, where the network's is symbolic; 0 leaves it"),
            "simplify": Option(True, "simplify the graph by onnxsim first", alternatives=(True, False)),
        },
        automatic=False,
        environment="onnx2tf",
    )


def _conversion(target: str, file: str) -> Callable[[Model, Path, Mapping[str, Any]], str]:
    def convert(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
        with tempfile.TemporaryDirectory(prefix=".scratch-", dir=folder) as scratch:
            copy = Path(scratch) / "model.onnx"
            copy_model(Path(model.path), copy)
            arguments = {"model": str(copy), "output": str(folder / file), "target": target, **options}
            run_script(_SCRIPT, arguments, Path(scratch), what="onnx2tf", environment_name="onnx2tf")
        return file

    return convert

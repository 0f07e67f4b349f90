"""Tools in environments of their own: litert-torch, from PyTorch to TFLite with no ONNX between, and onnx2tf."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from conrepair.formats.converters.base import Converter, Option
from conrepair.formats.converters.torch_onnx import is_traced
from conrepair.formats.models.identity import copy_model
from conrepair.formats.models.model import Model
from conrepair.ground.data.symbolic_sizes import with_declared_sizes
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.outside.scripts import run_script

_FILE = "model.tflite"
_LITERT_SCRIPT = Path(__file__).parent / "scripts" / "torch_tflite.py"
_ONNX2TF_SCRIPT = Path(__file__).parent / "scripts" / "onnx_tensorflow.py"


# PyTorch to TFLite by litert-torch.
#
# Its PyTorch has our version, so that the network goes over as an exported program. It can't keep a symbolic batch
# (its lowering of `view` wants numbers), so the batch is fixed.


def _convert(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
    import torch

    from conrepair.formats.torch.load.framework import TorchRunnable, example_inputs

    runnable = TorchRunnable(model)
    inputs = with_declared_sizes(runnable.inputs, model.inputs)
    examples = example_inputs(tuple(_with_batch(spec, options["batch"]) for spec in inputs))
    with tempfile.TemporaryDirectory(prefix=".scratch-", dir=folder) as scratch:
        program = Path(scratch) / "model.pt2"
        with torch.no_grad():
            torch.export.save(torch.export.export(runnable.module, examples), program)
        arguments = {"program": str(program), "output": str(folder / _FILE)}
        run_script(_LITERT_SCRIPT, arguments, Path(scratch), what="litert-torch", environment_name="litert-torch")
    return _FILE


def _accepts(model: Model) -> str | None:
    if is_traced(model):
        return "torch.export doesn't read TorchScript; convert to ONNX by torch-onnx-script instead (`via`)"
    return None


def _with_batch(spec: TensorSpec, batch: int) -> TensorSpec:
    if not spec.shape or isinstance(spec.shape[0], int):
        return spec
    return replace(spec, shape=(batch, *spec.shape[1:]))


LITERT = Converter(
    name="torch-tflite-litert",
    source="torch",
    target="tflite",
    distributions=("litert-torch", "litert-converter", "ai-edge-litert", "torch"),
    convert=_convert,
    options={"batch": Option(1, "the batch size that the result has, where the network's is symbolic")},
    accepts=_accepts,
    automatic=False,
    environment="litert-torch",
)


# ONNX to a SavedModel, or to TFLite in float, by onnx2tf. It gets a copy: it writes to its input file.


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
            run_script(_ONNX2TF_SCRIPT, arguments, Path(scratch), what="onnx2tf", environment_name="onnx2tf")
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

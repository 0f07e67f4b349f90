"""PyTorch to ONNX by the older exporter (tracing to TorchScript)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conrepair.converters.base import Converter, Option
from conrepair.converters.torch_onnx import export_arguments, symbolic_axes
from conrepair.frameworks.model import Model

__all__ = ["CONVERTER"]

_FILE = "model.onnx"


def _convert(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
    import torch

    arguments = export_arguments(model)
    tensors = zip(
        [*arguments.input_names, *arguments.output_names],
        [*arguments.inputs, *arguments.outputs],
        strict=True,
    )
    torch.onnx.export(
        arguments.module,
        arguments.examples,
        str(folder / _FILE),
        dynamo=False,
        opset_version=options["opset"],
        do_constant_folding=options["fold_constants"],
        input_names=arguments.input_names,
        output_names=arguments.output_names,
        dynamic_axes={name: axes for name, spec in tensors if (axes := symbolic_axes(spec))},
    )
    return _FILE


CONVERTER = Converter(
    name="torch-onnx-script",
    source="torch",
    target="onnx",
    distributions=("torch", "onnx"),
    needs=frozenset({"torch"}),
    convert=_convert,
    options={
        "opset": Option(17, "ONNX opset (7 to 20)", alternatives=(17, 13, 11, 20, 9)),
        "fold_constants": Option(
            True, "compute constant parts at export (folds BatchNorm)", alternatives=(True, False)
        ),
    },
    preference=2,
)

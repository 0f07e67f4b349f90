"""PyTorch to ONNX by the older exporter (tracing to TorchScript)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conrepair.converters.base import Converter, Option
from conrepair.converters.torch_onnx import export_names, symbolic_axes
from conrepair.frameworks.model import Model

__all__ = ["CONVERTER"]

_FILE = "model.onnx"


def _convert(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
    import torch

    from conrepair.frameworks.torch import TorchRunnable

    runnable = TorchRunnable(model)
    names = export_names(runnable)
    tensors = zip(itertools.chain(*names.values()), [*runnable.inputs, *runnable.outputs], strict=True)
    torch.onnx.export(
        runnable.module,
        runnable.examples,
        str(folder / _FILE),
        dynamo=False,
        opset_version=options["opset"],
        do_constant_folding=options["fold_constants"],
        dynamic_axes={name: axes for name, spec in tensors if (axes := symbolic_axes(spec))},
        **names,
    )
    return _FILE


CONVERTER = Converter(
    name="torch-onnx-script",
    source="torch",
    target="onnx",
    distributions=("torch", "onnx"),
    convert=_convert,
    options={
        "opset": Option(17, "ONNX opset (7 to 20)", alternatives=(17, 13, 11, 20, 9)),
        "fold_constants": Option(
            True, "compute constant parts at export (folds BatchNorm)", alternatives=(True, False)
        ),
    },
    preference=2,
)

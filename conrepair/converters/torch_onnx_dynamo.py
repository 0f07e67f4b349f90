"""PyTorch to ONNX by the current exporter (torch.export)."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conrepair.converters.base import Converter, Option
from conrepair.converters.torch_onnx import export_names, symbolic_axes
from conrepair.frameworks.detect import container, is_torchscript
from conrepair.frameworks.model import Model
from conrepair.runtime.errors import ConversionError

if TYPE_CHECKING:
    from conrepair.frameworks.torch import TorchRunnable

__all__ = ["CONVERTER"]

_FILE = "model.onnx"


def _convert(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
    import torch

    from conrepair.frameworks.torch import TorchRunnable
    from conrepair.onnx_passes.files import is_large
    from conrepair.onnx_passes.lower_opset import lower_opset

    if reason := _accepts(model):
        raise ConversionError(f"torch-onnx-dynamo can't take {model.path}: {reason}.")
    runnable = TorchRunnable(model)
    program = torch.onnx.export(
        runnable.module,
        runnable.examples,
        dynamo=True,
        verbose=False,
        opset_version=options["opset"] or None,
        optimize=options["optimize"],
        dynamic_shapes=_dynamic_shapes(runnable),
        **export_names(runnable),
    )
    if options["opset"]:
        # The exporter writes opset 18 at least and leaves it at that when its own way down fails.
        lower_opset(program.model, options["opset"])
    program.save(folder / _FILE, external_data=is_large(program.model))
    return _FILE


def _accepts(model: Model) -> str | None:
    path = Path(model.path)
    if model.factory is None and container(path) != ".pt2" and is_torchscript(path):
        return "the exporter doesn't read TorchScript; torch-onnx-script does (`via`)"
    return None


def _dynamic_shapes(runnable: TorchRunnable) -> Any:
    import torch

    shapes = tuple(
        {
            axis: torch.export.Dim(name) if name.isidentifier() else torch.export.Dim.AUTO
            for axis, name in symbolic_axes(spec).items()
        }
        for spec in runnable.inputs
    )
    if not any(shapes):
        return None
    parameters = inspect.signature(runnable.module.forward).parameters.values()
    # The shapes have the structure of the parameters, and *arguments is one of them.
    return (shapes,) if any(item.kind is item.VAR_POSITIONAL for item in parameters) else shapes


CONVERTER = Converter(
    name="torch-onnx-dynamo",
    source="torch",
    target="onnx",
    distributions=("torch", "onnxscript", "onnx"),
    convert=_convert,
    options={
        "opset": Option(0, "ONNX opset; 0 lets the exporter choose", alternatives=(0, 18, 20, 23)),
        "optimize": Option(True, "let the exporter optimize the graph", alternatives=(True, False)),
    },
    preference=1,
    accepts=_accepts,
)

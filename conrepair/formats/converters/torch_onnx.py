"""PyTorch to ONNX, by the current exporter (torch.export) and by the older one (tracing to TorchScript)."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conrepair.formats.converters.base import Converter, Option
from conrepair.formats.models.detect import container, is_torchscript
from conrepair.formats.models.model import Model
from conrepair.ground.data.tensor_spec import TensorSpec

if TYPE_CHECKING:
    from conrepair.formats.torch.load.framework import TorchRunnable

_FILE = "model.onnx"


def export_names(runnable: TorchRunnable) -> dict[str, list[str]]:
    """The exporters' arguments that name inputs and outputs, in order.

    An output named like an input is renamed, as ONNX wants all names different.
    """
    inputs, outputs = ([spec.name for spec in specs] for specs in (runnable.inputs, runnable.outputs))
    return {"input_names": inputs, "output_names": [f"{name}_out" if name in inputs else name for name in outputs]}


def symbolic_axes(spec: TensorSpec) -> dict[int, str]:
    """Names of the symbolic dimensions by axis."""
    return {axis: str(size) for axis, size in enumerate(spec.shape) if not isinstance(size, int)}


def is_traced(model: Model) -> bool:
    """Whether a file is TorchScript, which torch.export doesn't read."""
    path = Path(model.path)
    return model.factory is None and container(path) != ".pt2" and is_torchscript(path)


# The current exporter.


def _convert_exported(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
    import torch

    from conrepair.formats.onnx.passes.files import is_large
    from conrepair.formats.onnx.passes.lower_opset import lower_opset
    from conrepair.formats.torch.load.framework import TorchRunnable

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
    return "the exporter doesn't read TorchScript; torch-onnx-script does (`via`)" if is_traced(model) else None


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


DYNAMO = Converter(
    name="torch-onnx-dynamo",
    source="torch",
    target="onnx",
    distributions=("torch", "onnxscript", "onnx"),
    convert=_convert_exported,
    options={
        "opset": Option(0, "ONNX opset; 0 lets the exporter choose", alternatives=(0, 18, 20, 23)),
        "optimize": Option(True, "let the exporter optimize the graph", alternatives=(True, False)),
    },
    preference=1,
    accepts=_accepts,
)


# The older one.


def _convert_traced(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
    import torch

    from conrepair.formats.torch.load.framework import TorchRunnable

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


SCRIPT = Converter(
    name="torch-onnx-script",
    source="torch",
    target="onnx",
    distributions=("torch", "onnx"),
    convert=_convert_traced,
    options={
        "opset": Option(17, "ONNX opset (7 to 20)", alternatives=(17, 13, 11, 20, 9)),
        "fold_constants": Option(
            True, "compute constant parts at export (folds BatchNorm)", alternatives=(True, False)
        ),
    },
    preference=2,
)

"""ONNX to PyTorch by onnx2torch.

onnx2torch knows the operators of opset 13, and stumbles over Identity nodes on weights (the older PyTorch
exporter writes them for shared tensors); so the graph is lowered and cleaned first.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conrepair.converters.base import Converter, Option
from conrepair.converters.torch_result import save_torch
from conrepair.data.tensor_spec import with_declared_sizes
from conrepair.frameworks.model import Model

__all__ = ["CONVERTER"]


def _convert(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
    import onnx
    import onnx_ir
    from onnx_ir.passes.common import IdentityEliminationPass

    from conrepair.converters.onnx_opset import lower_opset
    from conrepair.frameworks.onnx import OnnxRunnable
    from conrepair.frameworks.torch import example_inputs
    from conrepair.runtime.torchvision import import_torchvision

    import_torchvision()  # onnx2torch imports it
    import onnx2torch

    # With its external data, which onnx_ir would leave to be looked for in the working directory.
    graph = onnx_ir.from_proto(onnx.load(model.path))
    IdentityEliminationPass()(graph)
    lower_opset(graph, options["opset"])
    module = onnx2torch.convert(onnx_ir.to_proto(graph)).eval()
    inputs = OnnxRunnable(model).inputs
    return save_torch(module, example_inputs(with_declared_sizes(inputs, model.inputs)), inputs, folder)


CONVERTER = Converter(
    name="onnx2torch",
    source="onnx",
    target="torch",
    distributions=("onnx2torch", "torch", "torchvision", "onnx", "onnx-ir"),
    needs=frozenset({"torch"}),
    convert=_convert,
    options={"opset": Option(13, "opset to lower the graph to before the tool reads it")},
)

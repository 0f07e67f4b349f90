"""ONNX to PyTorch by onnx2torch.

onnx2torch knows most operators of opset 17, reads sizes from tensors, and stumbles over Identity nodes on weights
(the older PyTorch exporter writes them for shared tensors); so the graph is normalised first, and operators on sizes
are ours (docs/normalisation.md).
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conrepair.converters.base import Converter, Option
from conrepair.converters.onnx_passes.wants import Wants
from conrepair.converters.torch_onnx import symbolic_axes
from conrepair.data.tensor_spec import TensorSpec, with_declared_sizes
from conrepair.frameworks.model import Model

__all__ = ["CONVERTER"]


def _convert(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
    import onnx_ir

    from conrepair.converters.onnx_passes.files import is_large, save
    from conrepair.converters.onnx_passes.normalise import normalise
    from conrepair.converters.torch_domain.marking import mark_integers
    from conrepair.frameworks.onnx import OnnxRunnable
    from conrepair.frameworks.torch import example_inputs
    from conrepair.runtime.torchvision import import_torchvision

    import_torchvision()  # onnx2torch imports it
    import onnx2torch

    from conrepair.converters.torch_domain.register import register

    register()
    graph = normalise(model.path, _wants(options["opset"]), model.inputs)
    mark_integers(graph)
    with tempfile.TemporaryDirectory() as scratch:
        if is_large(graph):
            save(graph, Path(scratch) / "model.onnx")
        proto = str(Path(scratch) / "model.onnx") if is_large(graph) else onnx_ir.to_proto(graph)
        module = onnx2torch.convert(proto).eval()
    inputs = OnnxRunnable(model).inputs
    return _save(module, example_inputs(with_declared_sizes(inputs, model.inputs)), inputs, folder)


def _wants(opset: int) -> Wants:
    """What onnx2torch's own registry lacks is expanded."""
    import onnx
    from onnx2torch.node_converters.registry import _CONVERTER_REGISTRY

    from conrepair.converters.torch_domain.marking import REPLACED

    known = {(item.operation_type, item.version) for item in _CONVERTER_REGISTRY if not item.domain}
    lacking = frozenset(
        schema.name
        for schema in onnx.defs.get_all_schemas_with_history()
        if schema.domain == ""
        and schema.name not in REPLACED
        and schema.since_version <= opset
        and (schema.name, onnx.defs.get_schema(schema.name, opset, "").since_version) not in known
    )
    return Wants(highest=opset, expand=lacking, identities=False, explicit_pads=True, own_outputs=True)


def _save(module: Any, examples: Any, inputs: tuple[TensorSpec, ...], folder: Path) -> str:
    """Save as an exported program, else as TorchScript.

    torch.export can't follow modules that read elements of tensors while running; a trace writes their values
    down, which are those of the example.
    """
    import torch

    shapes = tuple(dict.fromkeys(symbolic_axes(spec), torch.export.Dim.AUTO) for spec in inputs)
    try:
        program = torch.export.export(module, examples, dynamic_shapes=shapes)
        _report_fixed(program, inputs)
        torch.export.save(program, folder / "model.pt2")
    # torch.export raises a dozen types; whichever, the next way is tried, and its failure is the result.
    except Exception as error:  # noqa: BLE001
        first_line = str(error).strip().splitlines()[:1]
        print(f"torch.export: {type(error).__name__}: {first_line}; tracing instead")  # noqa: T201
        (folder / "model.pt2").unlink(missing_ok=True)
        with torch.inference_mode():
            torch.jit.trace(module, examples, check_trace=False).save(str(folder / "model.pt"))
        return "model.pt"
    return "model.pt2"


def _report_fixed(program: Any, inputs: tuple[TensorSpec, ...]) -> None:
    """Say in the log which symbolic dimensions torch.export had to give a number."""
    placeholders = [node for node in program.graph.nodes if node.op == "placeholder"][-len(inputs) :]
    for node, spec in zip(placeholders, inputs, strict=False):
        shape = node.meta["val"].shape
        for axis, name in symbolic_axes(spec).items():
            if isinstance(shape[axis], int):
                print(f"torch.export fixed dimension {name} of input {spec.name} at {shape[axis]}")  # noqa: T201


CONVERTER = Converter(
    name="onnx2torch",
    source="onnx",
    target="torch",
    distributions=("onnx2torch", "torch", "torchvision", "onnx", "onnx-ir"),
    needs=frozenset({"torch"}),
    convert=_convert,
    options={"opset": Option(17, "opset to lower the graph to before the tool reads it")},
)

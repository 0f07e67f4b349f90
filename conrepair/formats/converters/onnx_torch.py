"""ONNX to PyTorch by onnx2torch.

onnx2torch knows most operators of opset 17, reads sizes from tensors, and stumbles over Identity nodes on weights
(the older PyTorch exporter writes them for shared tensors); so the graph is normalised first, and operators on sizes
are ours (docs/converters.md).
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conrepair.formats.converters.base import Converter, Option
from conrepair.formats.converters.torch_result import save_torch
from conrepair.formats.models.model import Model
from conrepair.formats.onnx.passes.wants import Wants
from conrepair.ground.data.symbolic_sizes import with_declared_sizes

_SPECIAL = r"[^\w./:-]"


def _convert(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
    import onnx_ir

    from conrepair.formats.converters.torch_domain.marking import mark_integers
    from conrepair.formats.onnx.load.framework import OnnxRunnable
    from conrepair.formats.onnx.passes.files import is_large, save
    from conrepair.formats.onnx.passes.normalise import normalise
    from conrepair.formats.torch.load.framework import example_inputs
    from conrepair.ground.runtime.torchvision import import_torchvision

    import_torchvision()  # onnx2torch imports it
    import onnx2torch

    from conrepair.formats.converters.torch_domain.register import register

    register()
    graph = normalise(model.path, _wants(options["opset"]), model.inputs)
    mark_integers(graph)
    _name_plainly(graph)
    with tempfile.TemporaryDirectory() as scratch:
        if is_large(graph):
            save(graph, Path(scratch) / "model.onnx")
        proto = str(Path(scratch) / "model.onnx") if is_large(graph) else onnx_ir.to_proto(graph)
        module = onnx2torch.convert(proto).eval()
    inputs = OnnxRunnable(model).inputs
    return save_torch(module, example_inputs(with_declared_sizes(inputs, model.inputs)), inputs, folder)


def _name_plainly(model: Any) -> None:
    """Take out of the nodes' names, which modules get, what saved programs separate names with (";", ",")."""
    for index, node in enumerate(model.graph):
        if node.name and re.search(_SPECIAL, node.name):
            node.name = f"{re.sub(_SPECIAL, '_', node.name)}_{index}"


def _wants(opset: int) -> Wants:
    """What onnx2torch's own registry lacks is expanded."""
    import onnx
    from onnx2torch.node_converters.registry import _CONVERTER_REGISTRY

    from conrepair.formats.converters.torch_domain.marking import REPLACED

    known = {(item.operation_type, item.version) for item in _CONVERTER_REGISTRY if not item.domain}
    lacking = frozenset(
        schema.name
        for schema in onnx.defs.get_all_schemas_with_history()
        if schema.domain == ""
        and schema.name not in REPLACED
        and schema.since_version <= opset
        and (schema.name, onnx.defs.get_schema(schema.name, opset, "").since_version) not in known
    )
    return Wants(highest=opset, expand=lacking, identities=False, explicit_pads=True, loops=False, own_outputs=True)


CONVERTER = Converter(
    name="onnx2torch",
    source="onnx",
    target="torch",
    distributions=("onnx2torch", "torch", "torchvision", "onnx", "onnx-ir"),
    convert=_convert,
    options={"opset": Option(17, "opset to lower the graph to before the tool reads it", alternatives=(17, 13, 11))},
)

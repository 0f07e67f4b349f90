"""Raise the opset of an ONNX graph by the ONNX package's version converter."""

from __future__ import annotations

import onnx
import onnx_ir

from conrepair.formats.onnx.passes.inline_functions import inline_functions
from conrepair.ground.onnx_graphs.infer_shapes import without_weights
from conrepair.ground.runtime.errors import ConversionError

# One name for ONNX's own domain.

_LONG = "ai.onnx"


def name_default_domain(model: onnx_ir.Model) -> None:
    """Import ONNX's operators as "" in place, where a model imports them as "ai.onnx": nodes have the short name."""
    for imports in [model.opset_imports, *(function.opset_imports for function in model.functions.values())]:
        if _LONG in imports:
            imports.setdefault("", imports.pop(_LONG))


_SCAN = 9  # opset that changed Scan's meaning


def raise_opset(model: onnx_ir.Model, opset: int) -> None:
    """Rewrite `model` in place to at least the given opset; left alone when it is high enough.

    Raises:
        ConversionError: if the converter has no way up.
    """
    inline_functions(model)
    if model.opset_imports.get("", opset) >= opset:
        return
    if model.opset_imports[""] < _SCAN <= opset and any(node.op_type == "Scan" for node in model.graph.all_nodes()):
        raise ConversionError(
            f"Scan can't be raised from opset {model.opset_imports['']} to {opset}: it had a batch dimension before "
            f"opset {_SCAN}, which ONNX's version converter doesn't know. Export the model with a higher opset."
        )
    light, weights = without_weights(model)
    try:
        proto = onnx.version_converter.convert_version(light, opset)
    # The converter raises what its C++ throws: RuntimeError, ConvertError, ValueError, IndexError.
    except Exception as error:
        raise ConversionError(
            f"the model can't be raised from opset {model.opset_imports['']} to {opset}: {error}. "
            "Export it with a higher opset."
        ) from error
    graph = onnx_ir.from_proto(proto).graph
    inputs = len(model.graph.inputs)
    for value in graph.inputs[inputs:]:
        value.const_value = weights[str(value.name)]
        graph.register_initializer(value)
    del graph.inputs[inputs:]
    model.graph = graph

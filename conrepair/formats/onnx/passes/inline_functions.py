"""Put the nodes of a model's own functions where the functions are called."""

from __future__ import annotations

import onnx_ir
from onnx_ir.passes.common import InlinePass

from conrepair.ground.onnx_graphs.defaults import schema_of
from conrepair.ground.runtime.errors import ConversionError


def inline_functions(model: onnx_ir.Model) -> None:
    """Inline all model-local functions in place, those called by functions included.

    Raises:
        ConversionError: if a function is written in an opset that means another thing than the model's.
    """
    if not model.functions:
        return
    for function in model.functions.values():
        _adopt_opset(function, model)
    try:
        InlinePass()(model)
    except (ValueError, onnx_ir.passes.PassError) as error:
        raise ConversionError(f"the model's own functions can't be inlined: {error}") from error


def _adopt_opset(function: onnx_ir.Function, model: onnx_ir.Model) -> None:
    """Let a function have the model's opset if its operators mean the same there."""
    mine = function.opset_imports.get("")
    wanted = model.opset_imports.setdefault("", mine) if mine is not None else mine
    if mine == wanted or mine is None or wanted is None:
        return
    for node in function.all_nodes():
        meanings = [schema_of(node, opset) for opset in (mine, wanted)] if node.domain == "" else []
        if len({None if schema is None else schema.since_version for schema in meanings}) > 1:
            raise ConversionError(
                f"function {function.name} is written in opset {mine}, the model in opset {wanted}, and "
                f"{node.op_type} '{node.name}' differs between them. Export the model with one opset."
            )
    function.opset_imports[""] = wanted

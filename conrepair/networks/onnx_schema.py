"""What operators' schemas say: ONNX's own, and those that ONNX Runtime adds."""

from __future__ import annotations

from functools import cache
from typing import Any

import onnx
import onnx_ir

__all__ = ["formal_name", "schema_of"]


def schema_of(node: onnx_ir.Node, opset: int) -> Any:
    """The schema of a node's operator; None for one that neither has."""
    try:
        return onnx.defs.get_schema(node.op_type, opset, node.domain)
    except onnx.defs.SchemaError:
        return None


def formal_name(node: onnx_ir.Node, opset: int, index: int) -> str:
    """What a node's operator calls an input; with its place among others of a list behind it."""
    schema = schema_of(node, opset)
    names = [item.name for item in schema.inputs] if schema else _added().get((node.domain, node.op_type), [])
    if not names:
        return f"input_{index}"
    behind = index - len(names) + 1
    return str(names[min(index, len(names) - 1)]) + (f"_{behind}" if behind > 0 else "")


@cache
def _added() -> dict[tuple[str, str], list[str]]:
    """Names of the inputs of ONNX Runtime's operators."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    return {
        (schema.domain, schema.name): [item.name for item in schema.inputs]
        for schema in state.get_all_operator_schema()
        if schema.domain not in {"", "ai.onnx"}
    }

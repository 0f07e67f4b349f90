"""The table of ONNX's operators: which rule writes each in the vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from conrepair.graph.operators import WITH_OPERAND
from conrepair.networks import (
    onnx_blocks,
    onnx_elementwise,
    onnx_integers,
    onnx_normalizations,
    onnx_products,
    onnx_quantization,
    onnx_recurrent,
    onnx_shapes,
    onnx_windows,
)
from conrepair.networks.onnx_call import OnnxCall

__all__ = ["describe"]

_RULES: Mapping[str, Callable[[OnnxCall], None]] = {
    **onnx_blocks.RULES,
    **onnx_elementwise.RULES,
    **onnx_integers.RULES,
    **onnx_normalizations.RULES,
    **onnx_products.RULES,
    **onnx_quantization.RULES,
    **onnx_recurrent.RULES,
    **onnx_shapes.RULES,
    **onnx_windows.RULES,
}

# Operators whose first input may be constant when they aren't: the vocabulary has a parameter for it.
_EITHER = {
    *(*WITH_OPERAND, "CastLike", "Concat", "Einsum", "Expand", "Gather", "Gemm", "MatMul", "Sum", "Where"),
    *("GatherBlockQuantized", "QLinearAdd", "QLinearConcat", "QLinearMatMul", "QLinearMul"),
}


def describe(call: OnnxCall) -> None:
    """Let a node's rule add what it is in the vocabulary; without one, or if that adds nothing, it stays as it is."""
    rule = _RULES.get(call.native)
    if rule is not None and (call.operator in _EITHER or not call.is_constant(0)):
        rule(call)
    if not call.nodes:
        call.emit_native()

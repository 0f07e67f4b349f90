"""Take out what no output depends on."""

from __future__ import annotations

import onnx_ir
from onnx_ir.passes.common import RemoveUnusedFunctionsPass, RemoveUnusedNodesPass, RemoveUnusedOpsetsPass

__all__ = ["remove_unused"]


def remove_unused(model: onnx_ir.Model) -> None:
    """Remove unused nodes, initializers, functions and opset imports in place; inputs stay."""
    RemoveUnusedNodesPass()(model)
    RemoveUnusedFunctionsPass()(model)  # type: ignore[no-untyped-call]
    RemoveUnusedOpsetsPass()(model)

"""One name for ONNX's own domain."""

from __future__ import annotations

import onnx_ir

__all__ = ["name_default_domain"]

_LONG = "ai.onnx"


def name_default_domain(model: onnx_ir.Model) -> None:
    """Import ONNX's operators as "" in place, where a model imports them as "ai.onnx": nodes have the short name."""
    for imports in [model.opset_imports, *(function.opset_imports for function in model.functions.values())]:
        if _LONG in imports:
            imports.setdefault("", imports.pop(_LONG))

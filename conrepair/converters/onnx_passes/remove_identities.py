"""Take Identity nodes out."""

from __future__ import annotations

import onnx_ir
from onnx_ir.passes.common import IdentityEliminationPass

__all__ = ["remove_identities"]


def remove_identities(model: onnx_ir.Model) -> None:
    """Remove in place those that don't connect an input with an output."""
    IdentityEliminationPass()(model)

"""ONNX Runtime as the reference: every optimization off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["open_session"]

_ERRORS_ONLY = 3


def open_session(model: bytes | Path) -> Any:
    """A session on the CPU that runs a graph as it's written.

    Args:
        model: Serialized, or a file, which may have external data.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = _ERRORS_ONLY
    source = model if isinstance(model, bytes) else str(model)
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])

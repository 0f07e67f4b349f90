"""ONNX models as they're deployed: ONNX Runtime with graph optimizations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conrepair.frameworks.model import Model
from conrepair.frameworks.runnable import Runnable

__all__ = ["BACKEND", "OnnxRuntimeBackend"]


class OnnxRuntimeBackend:
    """See `conrepair.backends.base.Backend`."""

    def refuses(self, model: Model) -> str | None:
        """ONNX Runtime runs ONNX."""
        if model.framework == "onnx":
            return None
        return f"ONNX Runtime doesn't run {model.framework} models"

    def check(self, options: Mapping[str, Any]) -> None:
        """The configuration's types say all."""

    def takes(self, model: Model, options: Mapping[str, Any]) -> str:
        """Models as they are."""
        return model.framework

    def load(self, model: Model, options: Mapping[str, Any]) -> Runnable:
        """Load with the graph optimization level of option `optimization` (default: all)."""
        from conrepair.frameworks.onnx import OnnxRunnable

        return OnnxRunnable(model, str(options.get("optimization", "all")))


BACKEND = OnnxRuntimeBackend()

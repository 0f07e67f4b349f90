"""Each model in its own framework; ONNX in ONNX Runtime without graph optimizations (the reference)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conrepair.formats.backends.base import Backend
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.formats.models.runnable import Runnable


class LibrariesBackend(Backend):
    """See `conrepair.formats.backends.base.Backend`."""

    def check(self, options: Mapping[str, Any]) -> None:
        """The configuration's types say all."""

    def takes(self, model: Model, options: Mapping[str, Any]) -> str:
        """Models as they are."""
        return model.framework

    def load(self, model: Model, options: Mapping[str, Any]) -> Runnable:
        """Load in the model's framework; option `second_opinion` asks for its other arithmetic."""
        second_opinion = bool(options.get("second_opinion", False))
        return framework(model.framework).load(model, second_opinion=second_opinion)


BACKEND = LibrariesBackend()

"""ONNX's own evaluator, in Python and NumPy, as a runtime of ONNX files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conrepair.plugins import Array, Backend, ConfigError, Model, Runnable, describe, loading


class Evaluated(Runnable):
    """A loaded model: named arrays in, named arrays out."""

    def __init__(self, model: Model) -> None:
        """Load it; whatever the library raises of a file becomes an error that says what to do.

        Args:
            model: An ONNX file.
        """
        from onnx.reference import ReferenceEvaluator  # here, so that listing the plug-in costs nothing

        found = describe(model)
        self.inputs, self.outputs = found.inputs, found.outputs
        with loading(model, "an ONNX model"):
            self._evaluator = ReferenceEvaluator(model.path)

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        names = [spec.name for spec in self.outputs]
        return dict(zip(names, self._evaluator.run(names, dict(feeds)), strict=True))


class OnnxReference(Backend):
    """What conrepair asks of a runtime."""

    def refuses(self, model: Model) -> str | None:
        """Say what can't be run here, also after a conversion."""
        return None if model.framework == "onnx" else f"ONNX's evaluator doesn't run {model.framework} models"

    def check(self, options: Mapping[str, Any]) -> None:
        """Refuse options that there aren't, before anything is run."""
        if options:
            raise ConfigError(f"onnx-reference has no options, and is given {', '.join(sorted(options))}")

    def takes(self, model: Model, options: Mapping[str, Any]) -> str:
        """Name the format that `load` gets."""
        return "onnx"

    def load(self, model: Model, options: Mapping[str, Any]) -> Runnable:
        """Make a model ready to run."""
        return Evaluated(model)

    def arithmetic(self, options: Mapping[str, Any]) -> str:
        """Say what is computed in, so that its rounding error is judged as such."""
        return "float32"


BACKEND = OnnxReference()

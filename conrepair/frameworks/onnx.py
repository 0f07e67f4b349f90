"""ONNX through ONNX Runtime. The reference execution has all graph optimizations disabled.

ONNX Runtime's default optimizations are wrong in places (Pad followed by MaxPool on negative inputs), so the
model as written is the specification, and an optimized session is its second opinion.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import onnxruntime

from conrepair.data.tensor_spec import TensorSpec
from conrepair.frameworks.model import Description, Model
from conrepair.frameworks.onnx_file import STORED, describe_proto, read_valid, with_quantization
from conrepair.frameworks.proto_file import read_proto
from conrepair.frameworks.runnable import Array, Runnable, load_error

__all__ = ["FRAMEWORK", "OnnxFramework", "OnnxRunnable", "spec_of_value"]

_LEVELS = {
    "disabled": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
_ERRORS_ONLY = 3


class OnnxRunnable(Runnable):
    """An ONNX Runtime session on the CPU."""

    def __init__(self, model: Model, optimization: str = "disabled", without: Collection[str] = ()) -> None:
        """Load it.

        Args:
            model: A file.
            optimization: Level of graph optimizations.
            without: Names of optimizations that are left out of that level.
        """
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = _LEVELS[optimization]
        options.log_severity_level = _ERRORS_ONLY
        # Waiting threads must not spin: the photos of the next batch are decoded meanwhile.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            self._session = onnxruntime.InferenceSession(
                model.path, options, providers=["CPUExecutionProvider"], disabled_optimizers=list(without) or None
            )
        # onnxruntime raises one class per status code, without a common base of their own.
        except Exception as error:
            raise load_error(model, "an ONNX model", error) from error
        self.inputs = tuple(map(spec_of_value, self._session.get_inputs()))
        self.outputs = tuple(map(spec_of_value, self._session.get_outputs()))
        if any(spec.dtype in STORED for spec in self.inputs + self.outputs):
            proto = read_proto(model.path)
            self.inputs = with_quantization(proto, self.inputs)
            self.outputs = with_quantization(proto, self.outputs)

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        names = [spec.name for spec in self.outputs]
        return dict(zip(names, self._session.run(names, dict(feeds)), strict=True))


class OnnxFramework:
    """See `conrepair.frameworks.runnable.Framework`."""

    def describe(self, model: Model) -> Description:
        """Describe from the file; weights in external files are counted, not read."""
        proto = read_valid(model)
        runnable = OnnxRunnable(model)
        return describe_proto(proto, runnable.inputs, runnable.outputs)

    def load(self, model: Model, *, second_opinion: bool = False) -> Runnable:
        """A session as the file is written; the second opinion has every optimization enabled."""
        return OnnxRunnable(model, "all" if second_opinion else "disabled")


def spec_of_value(value: Any) -> TensorSpec:
    """Describe an input or output of an ONNX Runtime session."""
    dtype = value.type.removeprefix("tensor(").removesuffix(")")
    dtype = {"float": "float32", "double": "float64"}.get(dtype, dtype)
    shape = tuple(item if isinstance(item, int) else str(item or "?") for item in value.shape)
    return TensorSpec(value.name, shape, dtype)


FRAMEWORK = OnnxFramework()

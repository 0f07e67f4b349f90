"""ONNX through ONNX Runtime. The reference execution has all graph optimizations disabled.

ONNX Runtime's default optimizations are wrong in places (Pad followed by MaxPool on negative inputs), so the
model as written is the specification, and an optimized session is its second opinion.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime

from conrepair.data.tensor_spec import TensorSpec
from conrepair.frameworks.model import Description, Model
from conrepair.frameworks.runnable import Array, Runnable, load_error

__all__ = ["FRAMEWORK", "OnnxFramework", "OnnxRunnable"]

_LEVELS = {
    "disabled": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
_ERRORS_ONLY = 3


class OnnxRunnable(Runnable):
    """An ONNX Runtime session on the CPU."""

    def __init__(self, model: Model, optimization: str = "disabled") -> None:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = _LEVELS[optimization]
        options.log_severity_level = _ERRORS_ONLY
        # Waiting threads must not spin: the photos of the next batch are decoded meanwhile.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            self._session = onnxruntime.InferenceSession(model.path, options, providers=["CPUExecutionProvider"])
        # onnxruntime raises one class per status code, without a common base of their own.
        except Exception as error:
            raise load_error(model, "an ONNX model", error) from error
        self.inputs = tuple(map(_spec_of_value, self._session.get_inputs()))
        self.outputs = tuple(map(_spec_of_value, self._session.get_outputs()))

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        names = [spec.name for spec in self.outputs]
        return dict(zip(names, self._session.run(names, dict(feeds)), strict=True))


class OnnxFramework:
    """See `conrepair.frameworks.runnable.Framework`."""

    def describe(self, model: Model) -> Description:
        """Describe from the file; weights in external files are counted, not read."""
        try:
            proto = onnx.load(model.path, load_external_data=False)
            onnx.checker.check_model(model.path)
        except Exception as error:
            raise load_error(model, "an ONNX model", error) from error
        runnable = OnnxRunnable(model)
        weights: Counter[str] = Counter()
        for tensor in _initializers(proto):
            weights[_dtype_name(tensor.data_type)] += int(np.prod(tensor.dims, dtype=np.int64))
        return Description(
            format="ONNX",
            inputs=runnable.inputs,
            outputs=runnable.outputs,
            operators=dict(sorted(Counter(node.op_type for node in proto.graph.node).items())),
            parameters=sum(weights.values()),
            weights=dict(weights),
            opset=next(
                (item.version for item in proto.opset_import if item.domain in {"", "ai.onnx"}),
                None,
            ),
            producer=f"{proto.producer_name} {proto.producer_version}".strip(),
        )

    def load(self, model: Model, *, second_opinion: bool = False) -> Runnable:
        """A session as the file is written; the second opinion has every optimization enabled."""
        return OnnxRunnable(model, "all" if second_opinion else "disabled")


def _initializers(proto: onnx.ModelProto) -> list[onnx.TensorProto]:
    tensors = list(proto.graph.initializer)
    for node in proto.graph.node:
        if node.op_type == "Constant":
            tensors += [attribute.t for attribute in node.attribute if attribute.HasField("t")]
    return [tensor for tensor in tensors if len(tensor.dims) > 0]


def _spec_of_value(value: Any) -> TensorSpec:
    dtype = value.type.removeprefix("tensor(").removesuffix(")")
    dtype = {"float": "float32", "double": "float64"}.get(dtype, dtype)
    shape = tuple(item if isinstance(item, int) else str(item or "?") for item in value.shape)
    return TensorSpec(value.name, shape, dtype)


def _dtype_name(data_type: int) -> str:
    name = str(onnx.TensorProto.DataType.Name(data_type)).lower()
    return {"float": "float32", "double": "float64"}.get(name, name)


FRAMEWORK = OnnxFramework()

"""ONNX through ONNX Runtime. The reference execution has all graph optimizations disabled.

ONNX Runtime's default optimizations are wrong in places (Pad followed by MaxPool on negative inputs), so the
model as written is the specification, and an optimized session is its second opinion.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import onnxruntime

from conrepair.data.tensor_spec import TensorSpec
from conrepair.frameworks.identity import onnx_tensors
from conrepair.frameworks.model import Description, Model
from conrepair.frameworks.onnx_quantization import io_quantization
from conrepair.frameworks.runnable import Array, Runnable, load_error

__all__ = [
    "FRAMEWORK",
    "OnnxFramework",
    "OnnxRunnable",
    "describe_proto",
    "nodes_of",
    "spec_of_proto",
    "spec_of_value",
    "table_sizes",
]

_LEVELS = {
    "disabled": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
_ERRORS_ONLY = 3
_STORED = {"int8", "uint8", "int16", "uint16"}  # types that may stand for real numbers

# Operators that leave indices what they are, and which of their operands those are. Negative ones count from
# the end: Where(indices < 0, indices + size, indices).
_FIRST, _BRANCHES = slice(1), slice(1, 3)
_VALUES = {
    "Cast": _FIRST,
    "Flatten": _FIRST,
    "Identity": _FIRST,
    "Reshape": _FIRST,
    "Squeeze": _FIRST,
    "Unsqueeze": _FIRST,
    "Where": _BRANCHES,
}
_TABLES = {"Cast", "DequantizeLinear", "Identity"}


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
        self.inputs = tuple(map(spec_of_value, self._session.get_inputs()))
        self.outputs = tuple(map(spec_of_value, self._session.get_outputs()))
        if any(spec.dtype in _STORED for spec in self.inputs + self.outputs):
            known = io_quantization(onnx.load(model.path, load_external_data=False))
            self.inputs = tuple(replace(spec, quantization=known.get(spec.name)) for spec in self.inputs)
            self.outputs = tuple(replace(spec, quantization=known.get(spec.name)) for spec in self.outputs)

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
        return describe_proto(proto, runnable.inputs, runnable.outputs)

    def load(self, model: Model, *, second_opinion: bool = False) -> Runnable:
        """A session as the file is written; the second opinion has every optimization enabled."""
        return OnnxRunnable(model, "all" if second_opinion else "disabled")


def describe_proto(
    proto: onnx.ModelProto, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]
) -> Description:
    """What a file says, but for its inputs and outputs, which are given."""
    weights: Counter[str] = Counter()
    matrices: Counter[str] = Counter()
    for tensor in onnx_tensors(proto.graph):
        if tensor.dims:
            matrices[_dtype_name(tensor.data_type)] += sum(size > 1 for size in tensor.dims) > 1
            weights[_dtype_name(tensor.data_type)] += int(np.prod(tensor.dims, dtype=np.int64))
    sizes = table_sizes(proto)
    return Description(
        format="ONNX",
        inputs=tuple(replace(spec, high=sizes.get(spec.name)) for spec in inputs),
        outputs=tuple(outputs),
        operators=dict(sorted(Counter(node.op_type for node in nodes_of(proto.graph)).items())),
        parameters=sum(weights.values()),
        weights=dict(weights),
        matrices=dict(matrices),
        opset=next((item.version for item in proto.opset_import if item.domain in {"", "ai.onnx"}), None),
        producer=f"{proto.producer_name} {proto.producer_version}".strip(),
    )


def table_sizes(proto: onnx.ModelProto) -> dict[str, int]:
    """The smallest constant table that each input is looked up in."""
    names = {value.name: value.name for value in proto.graph.input}
    tables = {tensor.name: list(tensor.dims) for tensor in proto.graph.initializer}
    sizes: dict[str, int] = {}
    for node in proto.graph.node:
        attributes = {attribute.name: attribute for attribute in node.attribute}
        if node.op_type == "Constant" and "value" in attributes:
            tables[node.output[0]] = list(attributes["value"].t.dims)
        elif node.op_type in _TABLES and node.input[0] in tables:
            tables[node.output[0]] = tables[node.input[0]]
        elif node.op_type in _VALUES:
            origin = next((names[name] for name in node.input[_VALUES[node.op_type]] if name in names), None)
            if origin is not None:
                names[node.output[0]] = origin
        elif node.op_type == "Gather" and node.input[0] in tables and node.input[1] in names:
            size = tables[node.input[0]][attributes["axis"].i if "axis" in attributes else 0]
            name = names[node.input[1]]
            sizes[name] = min(size, sizes.get(name, size))
    return sizes


def nodes_of(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """All nodes, those of subgraphs (If, Loop, Scan) included."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for subgraph in [attribute.g, *attribute.graphs]:
                yield from nodes_of(subgraph)


def spec_of_value(value: Any) -> TensorSpec:
    """Describe an input or output of an ONNX Runtime session."""
    dtype = value.type.removeprefix("tensor(").removesuffix(")")
    dtype = {"float": "float32", "double": "float64"}.get(dtype, dtype)
    shape = tuple(item if isinstance(item, int) else str(item or "?") for item in value.shape)
    return TensorSpec(value.name, shape, dtype)


def spec_of_proto(value: onnx.ValueInfoProto) -> TensorSpec:
    """Describe an input or output as the file declares it."""
    kind = value.type.tensor_type
    shape = tuple(dim.dim_value if dim.HasField("dim_value") else dim.dim_param or "?" for dim in kind.shape.dim)
    return TensorSpec(value.name, shape, _dtype_name(kind.elem_type))


def _dtype_name(data_type: int) -> str:
    name = str(onnx.TensorProto.DataType.Name(data_type)).lower()
    return {"float": "float32", "double": "float64"}.get(name, name)


FRAMEWORK = OnnxFramework()

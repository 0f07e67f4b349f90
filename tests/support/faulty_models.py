"""Minimal ONNX models that tools get wrong, and how they're run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper

Arrays = Mapping[str, Any]


def normal(*shape: int) -> Any:
    """A reproducible float32 array."""
    return np.random.default_rng(20261120).normal(size=shape).astype(np.float32)


def whole(*values: Any) -> Any:
    """An int64 array of one axis."""
    return np.array(values, np.int64)


def real(*values: float) -> Any:
    """A float32 array of one axis."""
    return np.array(values, np.float32)


@dataclass(frozen=True)
class Case:
    """A model of a few ONNX nodes with one set of inputs.

    Attributes:
        body: The nodes as ONNX's parser reads them.
        feeds: Arrays of the inputs.
        constants: Arrays of the initializers.
        outputs: Names of the graph's outputs.
        opset: Of ONNX's own domain.
        least: The fault differs from the right answer by more than this somewhere; 0 where shapes or types differ.
    """

    body: str
    feeds: Arrays
    constants: Arrays = field(default_factory=dict)
    outputs: Sequence[str] = ("y",)
    opset: int = 13
    least: float = 0.0

    def model(self) -> onnx.ModelProto:
        """With inferred shapes."""
        graph = helper.make_graph(
            onnx.parser.parse_graph(f"case () => () {{ {self.body} }}").node,
            "case",
            [value_info(name, array) for name, array in self.feeds.items()],
            [onnx.ValueInfoProto(name=name) for name in self.outputs],
            [onnx.numpy_helper.from_array(array, name) for name, array in self.constants.items()],
        )
        opsets = [helper.make_opsetid("", self.opset)]
        return onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=opsets, ir_version=8))

    def expected(self) -> list[Any]:
        """What ONNX Runtime says, with all optimizations disabled."""
        return run(self.model(), self.feeds)


def value_info(name: str, array: Any) -> onnx.ValueInfoProto:
    """Type and shape of an array."""
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def run(model: onnx.ModelProto, feeds: Arrays | Sequence[Any], *, optimized: bool = False) -> list[Any]:
    """All outputs from ONNX Runtime; feeds by name or in order."""
    options = onnxruntime.SessionOptions()
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimized else levels.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [item.name for item in session.get_inputs()]
    return list(session.run(None, dict(feeds if isinstance(feeds, Mapping) else zip(names, feeds, strict=True))))


def foreign(model: onnx.ModelProto) -> set[str]:
    """Operators that ONNX doesn't have."""
    known = {schema.name for schema in onnx.defs.get_all_schemas()}
    return {node.op_type for node in model.graph.node if node.op_type not in known}


def difference(expected: Any, got: Any) -> float:
    """Largest absolute difference; infinite where only one side is finite, or both have other shapes."""
    one, two = np.asarray(expected, np.float64), np.asarray(got, np.float64)
    if one.shape != two.shape or not np.array_equal(np.isfinite(one), np.isfinite(two)):
        return float("inf")
    finite = np.isfinite(one)
    return float(np.max(np.abs(one[finite] - two[finite]), initial=0.0))


def is_wrong(expected: Any, got: Any, least: float) -> bool:
    """Whether an answer has another shape or type, or differs by more than `least`."""
    one, two = np.asarray(expected), np.asarray(got)
    if least:
        return difference(one, two) > least
    return (one.shape, one.dtype) != (two.shape, two.dtype)


_IMAGE = normal(1, 2, 5, 5)
_NEGATIVE = -np.abs(normal(1, 1, 4, 4)) - 1
_SCALES = {"s": real(1, 1, 1.6, 1.6)}

ONNX2TORCH_WRONG = {
    "Resize to the nearest": Case(
        'y = Resize<mode="nearest", coordinate_transformation_mode="half_pixel">(x, , s)',
        {"x": _IMAGE}, _SCALES, least=1,
    ),
    "Resize, linear, asymmetric": Case(
        'y = Resize<mode="linear", coordinate_transformation_mode="asymmetric">(x, , s)',
        {"x": _IMAGE}, _SCALES, least=0.3,
    ),
    "Resize, cubic, asymmetric": Case(
        'y = Resize<mode="cubic", coordinate_transformation_mode="asymmetric">(x, , s)',
        {"x": _IMAGE}, _SCALES, least=0.3,
    ),
    "CumSum": Case("y = CumSum(x, axis)", {"x": real(1, 2, 3)}, {"axis": np.array(0)}, least=4),
    "IsInf": Case("y = IsInf<detect_positive = 0>(x)", {"x": real(np.inf, -np.inf, 1)}, least=0.5),
    "NonZero": Case("y = NonZero(x)", {"x": np.float32([[1, 0, 2], [0, 3, 0]])}),
    "Pow": Case("y = Pow(x, e)", {"x": whole(2, 3)}, {"e": real(0.5, 2)}, least=0.4),
    "Range": Case(
        "y = Range(a, b, c)", {"a": np.array(0, np.int32)}, {"b": np.array(5, np.int32), "c": np.array(2, np.int32)}
    ),
    "TopK of equal elements": Case(
        "v, y = TopK(x, k)", {"x": real(*[1, 3, 3, 2, 3, 1] * 5)}, {"k": whole(4)}, outputs=("v", "y"), least=1
    ),
    "ConvTranspose with output_shape": Case(
        "y = ConvTranspose<strides = [2, 2], output_shape = [10, 10]>(x, w)", {"x": _IMAGE}, {"w": normal(2, 3, 3, 3)}
    ),
    "ReduceMax over several axes": Case(
        "y = ReduceMax<axes = [0, -1], keepdims = 0>(x)", {"x": normal(2, 3, 4)}, opset=12
    ),
    "ReduceMin over several axes": Case(
        "y = ReduceMin<axes = [0, -1], keepdims = 0>(x)", {"x": normal(2, 3, 4)}, opset=12
    ),
    "ReduceProd over several axes": Case(
        "y = ReduceProd<axes = [0, -1], keepdims = 0>(x)", {"x": normal(2, 3, 4)}, opset=12
    ),
    "Clip of integers": Case("y = Clip(x, a, b)", {"x": whole(-7, 3)}, {"a": np.array(-2), "b": np.array(3)}),
    "a later output alone": Case("a, y = Split(x)", {"x": normal(2, 4)}),
    "outputs in another order": Case("a, y = Split(x)", {"x": normal(2, 4)}, outputs=("y", "a"), least=0.3),
    "mean of LayerNormalization left out": Case(
        "y, mean = LayerNormalization(x, scale)",
        {"x": normal(2, 4)}, {"scale": normal(4)}, outputs=("y", "mean"), opset=17,
    ),
    "indices of MaxPool left out": Case(
        "y, i = MaxPool<kernel_shape = [2, 2]>(x)", {"x": _IMAGE}, outputs=("y", "i")
    ),
}  # fmt: skip

# Operators that conrepair gives onnx2torch in another form.
ONNX2TORCH_REFUSED = {
    "DepthToSpace, DCR": Case("y = DepthToSpace<blocksize = 2>(x)", {"x": normal(1, 8, 2, 2)}),
    "AveragePool, asymmetric pads": Case(
        "y = AveragePool<kernel_shape = [3, 3], pads = [0, 0, 1, 1]>(x)", {"x": _IMAGE}
    ),
    "Conv, SAME": Case(
        'y = Conv<auto_pad = "SAME_UPPER", strides = [2, 2]>(x, w)', {"x": _IMAGE}, {"w": normal(3, 2, 3, 3)}
    ),
    "Conv, weight as input": Case("y = Conv(x, w)", {"x": _IMAGE, "w": normal(3, 2, 3, 3)}),
    "ConvTranspose, asymmetric pads": Case(
        "y = ConvTranspose<pads = [0, 0, 1, 1]>(x, w)", {"x": _IMAGE}, {"w": normal(2, 3, 3, 3)}
    ),
    "ScatterND, add": Case(
        'y = ScatterND<reduction = "add">(x, i, u)',
        {"x": normal(4, 3)}, {"i": np.array([[1], [1]]), "u": normal(2, 3)}, opset=16,
    ),
    "LSTM": Case(
        "y = LSTM<hidden_size = 3>(x, w, r)", {"x": normal(2, 1, 4)}, {"w": normal(1, 12, 4), "r": normal(1, 12, 3)}
    ),
    "Trilu": Case("y = Trilu(x)", {"x": normal(3, 3)}, opset=14),
}  # fmt: skip

# They convert, and fail when they run.
ONNX2TORCH_FAILS = {
    "MaxPool, pads above half of the kernel": Case(
        "y = MaxPool<kernel_shape = [3, 3], pads = [2, 2, 2, 2]>(x)", {"x": _IMAGE}
    ),
    "Flatten, axis 0": Case("y = Flatten<axis = 0>(x)", {"x": normal(2, 3)}),
    "GatherElements, negative indices": Case(
        "y = GatherElements<axis = 1>(x, i)", {"x": normal(2, 4)}, {"i": np.array([[-1], [-2]])}
    ),
    "ReduceMean of integers": Case(
        "y = ReduceMean<keepdims = 0>(x)", {"x": np.array([1, 2, 4], np.int32)}, opset=12
    ),
    "Pad, reflect, of channels": Case(
        'y = Pad<mode = "reflect">(x, p)', {"x": _IMAGE}, {"p": whole(0, 1, 0, 0, 0, 0, 0, 0)}
    ),
}  # fmt: skip

_PARAMETERS = {"s": real(2, 3), "b": real(1, -1), "m": real(4, 5), "v": real(2, 9)}

REFERENCE_WRONG = {
    "Softmax of opset 11": Case("y = Softmax<axis = 1>(x)", {"x": normal(2, 3, 4)}, opset=11, least=0.3),
    "LogSoftmax of opset 11": Case("y = LogSoftmax<axis = 1>(x)", {"x": normal(2, 3, 4)}, opset=11, least=0.3),
    "Hardmax of opset 11": Case("y = Hardmax<axis = 1>(x)", {"x": normal(2, 3, 4)}, opset=11, least=0.9),
    "LRN": Case("y = LRN<size = 3, alpha = 0.5>(x)", {"x": normal(1, 5, 3, 3)}, least=0.1),
    "BatchNormalization of opset 9": Case(
        "y = BatchNormalization(x, s, b, m, v)", {"x": normal(1, 2, 3, 3)}, _PARAMETERS, opset=9, least=0.3
    ),
    "LpNormalization, p = 1": Case(
        "y = LpNormalization<axis = 1, p = 1>(x)", {"x": normal(3, 4)}, least=0.1
    ),
    "MaxPool, asymmetric pads": Case(
        "y = MaxPool<kernel_shape = [3, 3], pads = [0, 0, 2, 2]>(x)", {"x": normal(1, 1, 4, 4)}
    ),
}  # fmt: skip

VERSION_CONVERTER_WRONG = {
    "Hardmax from opset 11": Case("y = Hardmax<axis = 1>(x)", {"x": normal(2, 3, 4)}, opset=11, least=0.9),
    "Upsample, linear, from opset 9": Case(
        'y = Upsample<mode = "linear">(x, s)', {"x": normal(1, 1, 2, 2)}, {"s": real(1, 1, 2, 2)}, opset=9, least=0.1
    ),
}

OPTIMIZED_WRONG = Case(
    "p = Pad(x, pads) y = MaxPool<kernel_shape = [2, 2]>(p)",
    {"x": _NEGATIVE}, {"pads": whole(0, 0, 1, 1, 0, 0, 1, 1)}, least=1,
)  # fmt: skip

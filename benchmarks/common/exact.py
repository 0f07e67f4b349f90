"""What an ONNX file computes, not by code under test: in ONNX's reference in float64, or in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator

from benchmarks.common.plain_graph import Array
from conrepair.metrics.tensors import compare_tensors

__all__ = ["difference", "doubled", "in_float32", "in_float64"]

_TYPES = {TensorProto.FLOAT: TensorProto.DOUBLE}
Outputs = dict[str, Array]


def in_float32(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> Outputs:
    """Run by ONNX Runtime as it's written, without its optimizations."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [item.name for item in session.get_outputs()]
    given = _given([item.name for item in session.get_inputs()], feeds)
    return dict(zip(names, session.run(names, given), strict=True))


def in_float64(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> Outputs:
    """Run by ONNX's reference, with all real numbers in float64.

    Raises:
        Exception: whatever the reference raises for operators that it doesn't know.
    """
    evaluator = ReferenceEvaluator(doubled(model))
    given = {
        name: array.astype(np.float64) if array.dtype == np.float32 else array
        for name, array in _given(evaluator.input_names, feeds).items()
    }
    with np.errstate(all="ignore"):
        return dict(zip(evaluator.output_names, evaluator.run(None, given), strict=True))


def doubled(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same model in float64: its inputs, constants and casts."""
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    del wide.graph.value_info[:]
    for value in (*wide.graph.input, *wide.graph.output):
        kind = value.type.tensor_type
        kind.elem_type = _TYPES.get(kind.elem_type, kind.elem_type)
    for tensor in wide.graph.initializer:
        _widen(tensor)
    for node in wide.graph.node:
        for attribute in node.attribute:
            if attribute.name == "to" and node.op_type == "Cast":
                attribute.i = _TYPES.get(attribute.i, attribute.i)
            elif attribute.type == onnx.AttributeProto.TENSOR:
                _widen(attribute.t)
    return wide


def _given(names: Sequence[str], feeds: Mapping[str, Array]) -> dict[str, Array]:
    """By name, or by place where inputs have other names."""
    if set(names) <= set(feeds):
        return {name: feeds[name] for name in names}
    return dict(zip(names, feeds.values(), strict=True))


def _widen(tensor: TensorProto) -> None:
    if tensor.data_type == TensorProto.FLOAT:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))


def difference(expected: Mapping[str, Array], given: Mapping[str, Array]) -> float:
    """The largest relative L2 of an output; infinite where one isn't finite on one side, or isn't there."""
    worst = 0.0
    for one, two in _pairs(expected, given):
        if two is None or one.shape != two.shape:
            return float("inf")
        error = compare_tensors(one, two.astype(one.dtype), rtol=0, atol=0)
        worst = max(worst, float("inf") if error.mismatched else error.relative_l2)
    return worst


def _pairs(expected: Mapping[str, Array], given: Mapping[str, Array]) -> list[tuple[Array, Any]]:
    """By name where names are the same, else by place."""
    if set(expected) == set(given):
        return [(expected[name], given[name]) for name in expected]
    others = [*given.values(), *[None] * len(expected)]
    return list(zip(expected.values(), others, strict=False))

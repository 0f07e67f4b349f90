"""What an ONNX file computes, not by code under test: in ONNX's reference in float64, or in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx

from benchmarks.common.plain_graph import Array
from conrepair.ground.metrics.tensors import compare_tensors
from conrepair.verdicts.truth.referees import OnnxReference

__all__ = ["difference", "in_float32", "in_float64"]

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
        CannotJudgeError: for operators that the reference doesn't know.
    """
    return OnnxReference().answers(model, feeds)


def _given(names: Sequence[str], feeds: Mapping[str, Array]) -> dict[str, Array]:
    """By name, or by place where inputs have other names."""
    if set(names) <= set(feeds):
        return {name: feeds[name] for name in names}
    return dict(zip(names, feeds.values(), strict=True))


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

"""How large a network's tensors are."""

from __future__ import annotations

import contextlib
import math

import onnx

from conrepair.cases.case import Case

__all__ = ["largest"]


def largest(case: Case) -> int:
    """Elements of the largest tensor whose size is known, results in between among them.

    Args:
        case: Any.
    """
    graph = case.model.graph
    sizes = [array.shape for array in case.inputs.values()] + [tuple(item.dims) for item in graph.initializer]
    with contextlib.suppress(onnx.shape_inference.InferenceError):  # then what the file declares is what's known
        graph = onnx.shape_inference.infer_shapes(case.model).graph
    shapes = [item.type.tensor_type.shape for item in (*graph.value_info, *graph.output)]
    sizes += [tuple(size.dim_value for size in shape.dim) for shape in shapes if shape.dim]
    return max(map(math.prod, sizes), default=0)

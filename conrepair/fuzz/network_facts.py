"""How large a network's tensors are."""

from __future__ import annotations

import contextlib
import math
import re

import onnx

from conrepair.cases.case import Case
from conrepair.frameworks.onnx_files.file import nodes_of

__all__ = ["choices", "largest"]


# Attributes by which a network chooses what an operator computes: each way may be wrong for its own reason.

_OTHERS = re.compile("axis|^to$|type")  # whole numbers that are no truth values: places, and element types


def choices(model: onnx.ModelProto) -> tuple[str, ...]:
    """Names of attributes that hold a text or a truth value, each behind its operator's ("DFT.inverse").

    Which value it is isn't told: what's wrong is mostly so with several. Nor are sizes, which are as they come.

    Args:
        model: A reduced one, which has no attribute that doesn't matter.
    """
    return tuple(
        sorted(
            {
                f"{node.op_type}.{item.name}"
                for node in nodes_of(model.graph)
                for item in node.attribute
                if item.type == onnx.AttributeProto.STRING or (_is_truth(item) and not _OTHERS.search(item.name))
            }
        )
    )


def _is_truth(item: onnx.AttributeProto) -> bool:
    return item.type == onnx.AttributeProto.INT and item.i in {0, 1}


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

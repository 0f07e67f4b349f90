"""Prepare a graph's computations on shapes for onnx2torch.

onnx2torch computes shapes as tensors and reads their elements where a size is needed, which torch.export can't
follow when a size is symbolic. Here, operators that compute on shapes, and those that take sizes, axes or
indices as operands, move to a domain of ours, whose operators work with Python integers, or with
the symbols that torch.export has for them.
"""

from __future__ import annotations

import math

import onnx_ir

from conrepair.formats.converters.torch_domain.integer_operators import OPERATORS as INTEGERS
from conrepair.formats.converters.torch_domain.recurrent import RECURRENT
from conrepair.formats.converters.torch_domain.tensor_operators import OPERATORS, OTHERS
from conrepair.ground.onnx_graphs.infer_shapes import static_shape

DOMAIN = "conrepair"
"""Of operators that take and give integers."""

REPLACED = frozenset({"CumSum", "Range", "Resize", "TopK", "Trilu", *OTHERS, *RECURRENT} - {"Clip"})
"""Operators that are ours whatever they're given: onnx2torch lacks them, or computes something else."""

_PLACES = {name: places for name, (_, places) in {**OPERATORS, **RECURRENT}.items()}
_FLOATS = {onnx_ir.DataType.FLOAT, onnx_ir.DataType.FLOAT16, onnx_ir.DataType.DOUBLE}
_TENSOR = "Tensor"  # our operator that makes a tensor of integers
_HIGHEST_RANK = 2  # paddings are computed in pairs
_LONGEST = 64  # elements; longer vectors of integers are data


def mark_integers(model: onnx_ir.Model) -> None:
    """Move operators to our domain in place; shapes must have been inferred, and constants folded."""
    graph = model.graph
    integers: set[onnx_ir.Value] = set()
    for node in graph:
        if _computes_integers(node, integers):
            node.op_type = f"Integer{node.op_type}"
            node.domain = DOMAIN
            integers.update(node.outputs)
    for node in list(graph):
        if node.domain == DOMAIN:
            continue
        places = _PLACES.get(node.op_type, set())
        if (
            node.op_type in REPLACED
            or _clips_otherwise(node)
            or any(_is_integer(value, integers) for place, value in enumerate(node.inputs) if place in places)
        ):
            node.domain = DOMAIN
        for index, value in enumerate(node.inputs):
            if value in integers and index not in places:
                node.replace_input_with(index, _tensor_of(value, node))
    for value in graph.outputs:
        if value in integers:
            raise NotImplementedError(f"output {value.name} is a shape")  # separate_outputs put an Identity there
    model.opset_imports[DOMAIN] = graph.opset_imports[DOMAIN] = 1


def _clips_otherwise(node: onnx_ir.Node) -> bool:
    """Whether it's a Clip with bounds that are computed, or of integers: onnx2torch would make floats of those."""
    if node.op_type != "Clip" or node.inputs[0] is None:
        return False
    bounds = [value for value in node.inputs[1:] if value is not None]
    return node.inputs[0].dtype not in _FLOATS or not all(value.is_initializer() for value in bounds)


def _computes_integers(node: onnx_ir.Node, integers: set[onnx_ir.Value]) -> bool:
    if node.domain or len(node.outputs) != 1 or not _is_short(node.outputs[0]):
        return False
    if node.op_type in {"Shape", "Size"}:
        return True
    operands = [value for value in node.inputs if value is not None]
    return (
        node.op_type in INTEGERS
        and any(value in integers for value in operands)
        and all(value in integers or _is_constant(value) for value in operands)
        and not node.outputs[0].is_graph_output()
    )


def _is_short(value: onnx_ir.Value) -> bool:
    shape = static_shape(value)
    return (
        shape is not None and len(shape) <= _HIGHEST_RANK and math.prod(shape) <= _LONGEST and value.dtype in _KINDS
    )


_KINDS = {onnx_ir.DataType.INT64, onnx_ir.DataType.INT32, onnx_ir.DataType.BOOL}


def _is_constant(value: onnx_ir.Value) -> bool:
    return value.is_initializer() and _is_short(value)


def _is_integer(value: onnx_ir.Value | None, integers: set[onnx_ir.Value]) -> bool:
    return value is not None and (value in integers or _is_constant(value))


def _tensor_of(value: onnx_ir.Value, consumer: onnx_ir.Node) -> onnx_ir.Value:
    kind = value.dtype
    attributes = [onnx_ir.AttrInt64("to", int(kind))] if kind is not None else []
    node = onnx_ir.Node(DOMAIN, _TENSOR, [value], attributes)
    result = node.outputs[0]
    result.name = f"{value.name}/tensor for {consumer.name or consumer.op_type} {consumer.outputs[0].name}"
    result.type, result.shape = value.type, value.shape
    consumer.prepend(node)
    return result

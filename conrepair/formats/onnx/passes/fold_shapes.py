"""Evaluate computations on shapes as far as sizes are known.

A shape of which some sizes are symbolic (a batch) isn't constant, but what's computed from its known sizes is;
and the target of a Reshape of which all but one size are known can be written as a constant with one -1.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping

import numpy as np
import onnx_ir

from conrepair.formats.onnx.passes.sizes import ARITHMETIC, MOVING, NotKnownError, Sizes, each, quotient
from conrepair.ground.onnx_graphs.defaults import attribute
from conrepair.ground.onnx_graphs.infer_shapes import infer_shapes, rank_of
from conrepair.ground.onnx_graphs.initializers import new_initializer

_LONGEST = 64  # elements of what's taken for a computation on shapes
_ROUNDS = 4  # known Reshape targets let more shapes be inferred
_INTEGERS = {onnx_ir.DataType.INT64, onnx_ir.DataType.INT32}


def fold_shapes(model: onnx_ir.Model) -> None:
    """Replace in place computed sizes that are known by constants, and Reshape targets with one unknown by -1."""
    for _ in range(_ROUNDS):
        infer_shapes(model)
        known = _evaluate(model.graph)
        changed = [_write_constant(value, sizes, model.graph) for value, sizes in known.items()]
        changed += [_write_target(node, known, model.graph) for node in model.graph if node.op_type == "Reshape"]
        if not any(changed):
            return


def _evaluate(graph: onnx_ir.Graph) -> dict[onnx_ir.Value, Sizes]:
    """What is known of integer vectors and scalars: numbers, and None for each that isn't."""
    known: dict[onnx_ir.Value, Sizes] = {}
    for node in graph:
        if node.domain or len(node.outputs) != 1 or rank_of(node.outputs[0]) not in {0, 1}:
            continue
        with contextlib.suppress(NotKnownError):
            result = _of_shape(node) if node.op_type == "Shape" else _computed(node, known)
            if result.size <= _LONGEST:
                known[node.outputs[0]] = result
    return known


def _computed(node: onnx_ir.Node, known: Mapping[onnx_ir.Value, Sizes]) -> Sizes:
    if node.op_type not in _RULES or None in node.inputs:
        raise NotKnownError
    operands = [_sizes(value, known) for value in node.inputs if value is not None]
    try:
        return _RULES[node.op_type](*operands, **{name: item.value for name, item in node.attributes.items()})
    except (IndexError, ValueError):
        raise NotKnownError from None  # the graph contradicts itself, which whoever runs it will say better


def _sizes(value: onnx_ir.Value, known: Mapping[onnx_ir.Value, Sizes]) -> Sizes:
    if value in known:
        return known[value]
    constant = onnx_ir.convenience.get_const_tensor(value)
    if constant is None or constant.size > _LONGEST or constant.dtype not in _INTEGERS or len(constant.shape) > 1:
        raise NotKnownError
    return constant.numpy().astype(object)


def _of_shape(node: onnx_ir.Node) -> Sizes:
    source = node.inputs[0]
    if source is None or source.shape is None:
        raise NotKnownError
    asked = source.shape[attribute(node, "start") : attribute(node, "end")]
    return np.array([size if isinstance(size, int) else None for size in asked], object)


def _of_known(function: Callable[[int, int], int]) -> Callable[..., Sizes]:
    return each(lambda one, two: None if one is None or two is None else function(one, two))


_RULES: Mapping[str, Callable[..., Sizes]] = {
    **{name: rule for name, rule in MOVING.items() if name not in {"Expand", "Reshape", "Transpose", "Where"}},
    **{name: _of_known(function) for name, function in ARITHMETIC.items()},
    "Div": _of_known(lambda one, two: quotient(one, two) if two else 0),
}


def _write_constant(value: onnx_ir.Value, sizes: Sizes, graph: onnx_ir.Graph) -> bool:
    if value.dtype not in _INTEGERS or None in sizes.reshape(-1) or value.is_graph_output() or not value.uses():
        return False
    constant = new_initializer(graph, f"{value.name}/known", sizes.astype(value.dtype.numpy()))
    onnx_ir.convenience.replace_all_uses_with([value], [constant])
    return True


def _write_target(node: onnx_ir.Node, known: Mapping[onnx_ir.Value, Sizes], graph: onnx_ir.Graph) -> bool:
    target = node.inputs[1]
    if target is None or target not in known or onnx_ir.convenience.get_const_tensor(target) is not None:
        return False
    sizes = known[target].reshape(-1).tolist()
    if sizes.count(None) != 1 or any(size is not None and size < 1 for size in sizes):
        return False
    array = np.array([-1 if size is None else size for size in sizes], np.int64)
    node.replace_input_with(1, new_initializer(graph, f"{target.name}/known for {node.outputs[0].name}", array))
    return True

"""Evaluate computations on shapes as far as sizes are known.

A shape of which some sizes are symbolic (a batch) isn't constant, but what's computed from its known sizes is;
and the target of a Reshape of which all but one size are known can be written as a constant with one -1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx_ir

from conrepair.onnx_passes.defaults import attribute
from conrepair.onnx_passes.infer_shapes import infer_shapes
from conrepair.onnx_passes.initializers import new_initializer

__all__ = ["fold_shapes"]

Size = int | str | None
"""A number, a symbol, or not known."""

_LONGEST = 64  # elements of what's taken for a computation on shapes
_ROUNDS = 4  # known Reshape targets let more shapes be inferred


def fold_shapes(model: onnx_ir.Model) -> None:
    """Replace in place computed sizes that are known by constants, and Reshape targets with one unknown by -1."""
    for _ in range(_ROUNDS):
        infer_shapes(model)
        known = _evaluate(model.graph)
        changed = [_write_constant(value, sizes, model.graph) for value, sizes in known.items()]
        changed += [_write_target(node, known, model.graph) for node in model.graph if node.op_type == "Reshape"]
        if not any(changed):
            return


def _evaluate(graph: onnx_ir.Graph) -> dict[onnx_ir.Value, list[Size]]:
    """What is known of integer vectors and scalars."""
    known: dict[onnx_ir.Value, list[Size]] = {}
    for node in graph:
        rule = _RULES.get(node.op_type) if not node.domain else None
        if rule is None or len(node.outputs) != 1 or _rank(node.outputs[0]) not in {0, 1}:
            continue
        if node.op_type == "Shape":
            result = _of_shape(node)
        else:
            operands = [_sizes(value, known) for value in node.inputs if value is not None]
            if any(item is None for item in operands) or len(operands) != len(node.inputs):
                continue
            result = rule(node, [item for item in operands if item is not None])
        if result is not None and len(result) <= _LONGEST:
            known[node.outputs[0]] = result
    return known


def _rank(value: onnx_ir.Value) -> int | None:
    return None if value.shape is None else len(value.shape)


def _sizes(value: onnx_ir.Value, known: Mapping[onnx_ir.Value, list[Size]]) -> list[Size] | None:
    if value in known:
        return known[value]
    constant = onnx_ir.convenience.get_const_tensor(value)
    if constant is None or constant.size > _LONGEST or constant.dtype not in _INTEGERS or len(constant.shape) > 1:
        return None
    return [int(number) for number in constant.numpy().reshape(-1)]


_INTEGERS = {onnx_ir.DataType.INT64, onnx_ir.DataType.INT32}


def _of_shape(node: onnx_ir.Node) -> list[Size] | None:
    source = node.inputs[0]
    if source is None or source.shape is None:
        return None
    asked = source.shape[attribute(node, "start") : attribute(node, "end")]
    return [size if isinstance(size, int) else size.value for size in asked]


def _same(node: onnx_ir.Node, operands: Sequence[list[Size]]) -> list[Size] | None:
    if node.op_type == "Cast" and node.attributes["to"].as_int() not in _INTEGERS:
        return None
    return operands[0]


def _gather(node: onnx_ir.Node, operands: Sequence[list[Size]]) -> list[Size] | None:
    sizes, places = operands
    if not all(isinstance(place, int) and -len(sizes) <= place < len(sizes) for place in places):
        return None
    return [sizes[place] for place in places if isinstance(place, int)]


def _slice(node: onnx_ir.Node, operands: Sequence[list[Size]]) -> list[Size] | None:
    sizes, *bounds = operands
    numbers = [item for bound in bounds for item in bound if isinstance(item, int)]
    if len(numbers) != len(bounds) or any(len(bound) != 1 for bound in bounds):
        return None
    start, end, step = numbers[0], numbers[1], numbers[3] if len(numbers) > 3 else 1
    return sizes[start:end:step] if step > 0 else None


def _concat(node: onnx_ir.Node, operands: Sequence[list[Size]]) -> list[Size] | None:
    return [size for item in operands for size in item]


def _elementwise(function: Callable[[int, int], int]) -> Callable[..., list[Size] | None]:
    def rule(node: onnx_ir.Node, operands: Sequence[list[Size]]) -> list[Size] | None:
        first, second = operands
        length = max(len(first), len(second))
        if {len(first), len(second)} - {1, length}:
            return None
        pairs = zip(first * (length // len(first)), second * (length // len(second)), strict=True)
        return [function(one, two) if isinstance(one, int) and isinstance(two, int) else None for one, two in pairs]

    return rule


def _divide(one: int, two: int) -> int:
    """Towards zero, as ONNX divides whole numbers."""
    quotient = abs(one) // abs(two) if two else 0
    return quotient if (one < 0) == (two < 0) else -quotient


_RULES: Mapping[str, Callable[..., list[Size] | None]] = {
    "Add": _elementwise(lambda one, two: one + two),
    "Cast": _same,
    "Concat": _concat,
    "Div": _elementwise(_divide),
    "Gather": _gather,
    "Identity": _same,
    "Mul": _elementwise(lambda one, two: one * two),
    "Shape": _same,
    "Slice": _slice,
    "Squeeze": lambda node, operands: operands[0],
    "Sub": _elementwise(lambda one, two: one - two),
    "Unsqueeze": lambda node, operands: operands[0],
}


def _write_constant(value: onnx_ir.Value, sizes: list[Size], graph: onnx_ir.Graph) -> bool:
    kind = value.dtype
    if kind not in _INTEGERS or not all(isinstance(size, int) for size in sizes) or value.is_graph_output():
        return False
    if not value.uses():
        return False
    array = np.array(sizes, kind.numpy()).reshape([len(sizes)] * (_rank(value) or 0))
    constant = new_initializer(graph, f"{value.name}/known", array)
    onnx_ir.convenience.replace_all_uses_with([value], [constant])
    return True


def _write_target(node: onnx_ir.Node, known: Mapping[onnx_ir.Value, list[Size]], graph: onnx_ir.Graph) -> bool:
    source, target = node.inputs[:2]
    if (
        source is None
        or target is None
        or target not in known
        or onnx_ir.convenience.get_const_tensor(target) is not None
    ):
        return False
    sizes = known[target]
    unknown = [axis for axis, size in enumerate(sizes) if not isinstance(size, int)]
    if len(unknown) != 1 or any(isinstance(size, int) and size < 1 for size in sizes):
        return False
    array = np.array([size if isinstance(size, int) else -1 for size in sizes], np.int64)
    node.replace_input_with(1, new_initializer(graph, f"{target.name}/known for {node.outputs[0].name}", array))
    return True

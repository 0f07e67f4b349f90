"""Find an expression in a graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx_ir

from conrepair.equations.expression import ALL, Expression, Term
from conrepair.onnx_passes.defaults import write_defaults
from conrepair.onnx_passes.infer_shapes import rank_of
from conrepair.onnx_passes.initializers import constant_of
from conrepair.onnx_passes.rewrites.building import axes_of

__all__ = ["FLOATS", "Match", "is_reduction", "matched", "name_of"]

FLOATS = frozenset(onnx_ir.DataType[name] for name in ("FLOAT16", "BFLOAT16", "FLOAT", "DOUBLE"))
_OTHER_ORDER = {"Add", "Mul"}
_CLOSE = 1e-6  # relative: numbers of networks are float32
_OWN_AXIS = 13  # opset in which Softmax stopped to see its input as a matrix


@dataclass(frozen=True)
class Match:
    """Where an expression stands.

    Attributes:
        values: Tensors by the expression's names.
        numbers: Attributes by the expression's names; axes and keepdims of what is summed.
        nodes: That compute it, the last one first.
    """

    values: Mapping[str, onnx_ir.Value] = field(default_factory=dict)
    numbers: Mapping[str, Any] = field(default_factory=dict)
    nodes: tuple[onnx_ir.Node, ...] = ()


def is_reduction(operator: str) -> bool:
    """Whether an operator's axes are its own to say."""
    return operator.startswith("Reduce")


def name_of(node: onnx_ir.Node) -> str:
    """A node's name; where it has none, its result's."""
    return node.name or node.outputs[0].name or ""


def matched(expression: Expression, root: onnx_ir.Node, model: onnx_ir.Model) -> Match | None:
    """How an expression computes a node's result; None where it doesn't.

    Args:
        expression: What is looked for; `Square` is a product with itself, or a power of 2.
        root: The node.
        model: Of the node, with shapes.
    """
    return next(_matches(expression, root.outputs[0], model.opset_imports.get("", 1), Match()), None)


def _matches(expression: Expression, value: onnx_ir.Value, opset: int, so_far: Match) -> Iterator[Match]:
    """All ways in which a tensor is what an expression computes, with what names stand for already."""
    if isinstance(expression, float):
        numbers = constant_of(value)
        if numbers is not None and numbers.size and np.allclose(numbers.astype(float), expression, _CLOSE, 0):
            yield so_far
    elif isinstance(expression, str):
        if so_far.values.get(expression, value) is value:
            yield replace(so_far, values={**so_far.values, expression: value})
    elif expression.operator == "Square":
        (operand,) = expression.operands
        for written in (Term("Mul", (operand, operand)), Term("Pow", (operand, 2.0))):
            yield from _matches(written, value, opset, so_far)
    else:
        yield from _calls(expression, value, opset, so_far)


def _calls(term: Term, value: onnx_ir.Value, opset: int, so_far: Match) -> Iterator[Match]:
    """The same for a call: the node that makes the value, then its operands from left to right."""
    node = value.producer()
    if node is None or node.op_type != term.operator or node.domain not in {"", "ai.onnx"} or value.index():
        return
    given = [item for item in node.inputs if item is not None][: 1 if is_reduction(term.operator) else None]
    numbers = _numbers(term, node, opset)
    if numbers is None or len(given) != len(term.operands):
        return
    if any(so_far.numbers.get(name, number) != number for name, number in numbers.items()):
        return
    nodes = tuple(dict.fromkeys((*so_far.nodes, node)))
    for order in [given, given[::-1]] if term.operator in _OTHER_ORDER else [given]:
        states = [replace(so_far, numbers={**so_far.numbers, **numbers}, nodes=nodes)]
        for operand, item in zip(term.operands, order, strict=True):
            states = [more for state in states for more in _matches(operand, item, opset, state)]
        yield from states


def _numbers(term: Term, node: onnx_ir.Node, opset: int) -> dict[str, Any] | None:
    """What a node's attributes give to an expression's names; None where they aren't what it says."""
    write_defaults(node, opset)
    attributes = {name: item.value for name, item in node.attributes.items()}
    result: dict[str, Any] = {}
    for name, wanted in term.attributes:
        if name == ALL:
            result[str(wanted)] = attributes
        elif name == wanted:
            result[name] = attributes[name]
        elif attributes.get(name) != wanted:
            return None
    axes = _axes(node, attributes, rank_of(node.inputs[0]), opset)
    if axes is None:
        return None
    return result | {"axes": axes, "keepdims": attributes.get("keepdims", 1)} if axes else result


def _axes(node: onnx_ir.Node, given: Mapping[str, Any], rank: int | None, opset: int) -> list[int] | None:
    """Over which axes a node takes its sums, from the front; none where it takes none, None where it isn't known."""
    if rank is None:
        return None if is_reduction(node.op_type) or node.op_type.endswith(("Normalization", "Softmax")) else []
    match node.op_type:
        case "LayerNormalization":
            return list(range(given["axis"] % rank, rank))
        case "InstanceNormalization":
            return list(range(2, rank))
        case "MeanVarianceNormalization":
            return [axis % rank for axis in given.get("axes", (0, 2, 3))]
        case "Softmax" | "LogSoftmax":
            axis = given["axis"] % rank
            return [axis] if opset >= _OWN_AXIS else list(range(axis, rank))
    if not is_reduction(node.op_type):
        return []
    found = axes_of(node, rank)
    if found is None and len(node.inputs) > 1 and node.inputs[1] is not None:
        return None
    return found or (None if given.get("noop_with_empty_axes") or not rank else list(range(rank)))

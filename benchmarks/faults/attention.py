"""Where ONNX graphs have attention that's written out: products, a scale, a mask, a softmax."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir

from benchmarks.faults.edits import constant_of
from benchmarks.faults.places import is_float

__all__ = ["masked_sums", "scales"]

_MAKERS = ("MatMul", "Mul", "Div")


def masked_sums(graph: onnx_ir.Graph) -> Sequence[onnx_ir.Node]:
    """Sums of scores and a mask that nothing but a softmax reads."""
    return [node for node in graph if node.op_type == "Add" and _before_softmax(node) and scores_at(node) >= 0]


def scores_at(node: onnx_ir.Node) -> int:
    """Which operand of a sum is the scores; -1: none."""
    for index, value in enumerate(node.inputs):
        maker = None if value is None else value.producer()
        if maker is not None and maker.op_type in _MAKERS and _is_product(maker):
            return index
    return -1


def scales(graph: onnx_ir.Graph) -> Sequence[onnx_ir.Node]:
    """Factors and divisors of scores, one number each."""
    return [node for node in graph if node.op_type in {"Mul", "Div"} and _is_product(node)]


def _before_softmax(node: onnx_ir.Node) -> bool:
    uses = node.outputs[0].uses()
    return len(uses) == 1 and next(iter(uses)).node.op_type == "Softmax" and is_float(node.outputs[0])


def _is_product(node: onnx_ir.Node) -> bool:
    """Whether a node is a product of two computed matrices, or such a one with a scale."""
    if node.op_type == "MatMul":
        return all(constant_of(node, index) is None for index in range(2))
    number = constant_of(node, 1)
    maker = None if node.inputs[0] is None else node.inputs[0].producer()
    if number is None or number.size != 1 or maker is None:
        return False
    return maker.op_type == "MatMul" and _is_product(maker)

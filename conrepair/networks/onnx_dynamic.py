"""Products of integers that are quantized as the network runs: the scale of their weights stands behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import onnx_ir

__all__ = ["INTEGER_PRODUCTS", "scale_of_weight"]

INTEGER_PRODUCTS = frozenset({"ConvInteger", "MatMulInteger"})
"""Operators of integers whose results are integers, which what follows makes real numbers of."""

Place = tuple[onnx_ir.Node, int]


def scale_of_weight(node: onnx_ir.Node, is_constant: Callable[[onnx_ir.Value], bool]) -> Place | None:
    """Where the scale of an integer product's weights is written.

    A result of such a product is cast to a real type, and multiplied by both scales: that with which
    DynamicQuantizeLinear has quantized the data, and a constant, the weights'. They're multiplied before, or one
    after the other.

    Args:
        node: One of `INTEGER_PRODUCTS`.
        is_constant: Whether a value depends on no input of the network.

    Returns:
        A node, and the place among its inputs; None where what follows is something else.
    """
    data = node.inputs[0]
    quantizer = None if data is None else data.producer()
    if quantizer is None or quantizer.op_type != "DynamicQuantizeLinear":
        return None
    constants: list[Place] = []
    by_data = False
    for places in _factors(node.outputs[0], is_constant):
        for place in places:
            value = place[0].inputs[place[1]]
            if value is not None and is_constant(value):
                constants.append(place)
            elif value is not None and value is quantizer.outputs[1]:
                by_data = True
            else:
                return None
        if by_data and constants:
            return constants[0] if len(constants) == 1 else None
    return None


def _factors(value: onnx_ir.Value, is_constant: Callable[[onnx_ir.Value], bool]) -> Iterator[tuple[Place, ...]]:
    """What a value is multiplied by, product after product; where that's a product itself, its factors."""
    while len(uses := list(value.uses())) == 1:
        use = uses[0]
        if use.node.domain or use.node.op_type not in {"Cast", "Mul"}:
            return
        if use.node.op_type == "Mul":
            other = use.node.inputs[1 - use.idx]
            product = None if other is None else other.producer()
            is_product = product is not None and product.op_type == "Mul" and not product.domain
            if product is not None and other is not None and is_product and not is_constant(other):
                yield (product, 0), (product, 1)
            else:
                yield ((use.node, 1 - use.idx),)
        value = use.node.outputs[0]

"""ONNX's operators that compute with integers in the vocabulary: what they compute with the real numbers meant."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

import onnx_ir

from conrepair.formats.onnx.read.call import OnnxCall
from conrepair.formats.onnx.read.windows import kernel_of, window_of
from conrepair.ground.graph.layer_graph import Parameter

_MATRIX = 2


def _convolution(call: OnnxCall) -> None:
    """x, its scale and zero point, w, its, those of the result, bias."""
    parameters = _with_bias(call, call.dequantized(3, (4,), 5, axis=0), 8)
    if parameters is not None:
        attributes = {**window_of(call, kernel_of(call, 3)), "group": call.attribute("group", 1)}
        call.emit((call.input(0),), attributes, parameters, operator=_meant(call))


def _matmul(call: OnnxCall) -> None:
    """a, its scale and zero point, b, its, those of the result."""
    parameters: dict[str, Parameter] = {}
    for index, role, axis in ((0, "left", -2), (3, "weight", -1)):
        if call.is_constant(index):
            parameter = call.dequantized(index, (index + 1,), index + 2, axis=axis)
            if parameter is None:
                return
            parameters[role] = parameter
    call.emit(call.varying((0, 3)), parameters=parameters, operator=_meant(call))


def _gemm(call: OnnxCall) -> None:
    """As a product, with a bias in steps of both scales' product."""
    turned = bool(call.attribute("transB", 0))
    plain = not call.attribute("transA", 0) and float(call.attribute("alpha", 1.0)) == 1.0
    weight = call.dequantized(3, (4,), 5, axis=0 if turned else 1, turned=turned) if plain else None
    parameters = _with_bias(call, weight, 6)
    if parameters is not None and call.rank(0) == _MATRIX:
        call.emit((call.input(0),), parameters=parameters, written={"transB": turned}, operator="MatMul")


def _with_bias(call: OnnxCall, weight: Parameter | None, place: int) -> dict[str, Parameter] | None:
    """A weight, and the bias at a place if there's one, in steps of both scales' product; None if one isn't known."""
    bias = call.dequantized(place, (1, 4)) if call.given(place) else None
    if weight is None or (bias is None and call.given(place)):
        return None
    return {"weight": weight} if bias is None else {"weight": weight, "bias": bias}


def _dynamic_weight(call: OnnxCall, axis: int) -> Parameter | None:
    """The second input of an integer product as the real numbers that it stands for.

    Args:
        call: Of the product.
        axis: Of the channels, where they have a scale each.

    Returns:
        None where it isn't constant, or nothing says its scale.
    """
    place = scale_of_weight(call.node, call.constants.__contains__)
    if place is None or not call.is_constant(1) or (call.given(3) and not call.is_constant(3)):
        return None
    scale = place[0].inputs[place[1]]
    shape = call.shape(1) or ()
    if scale is None or math.prod(call.constants.shape(scale)) not in {1, *shape[axis:][:1]}:
        return None
    return call.by_channel(1, [scale], call.value(3), axis)


def _dynamic_matmul(call: OnnxCall) -> None:
    """a, b, their zero points; the result is in steps of both scales' product."""
    weight = _dynamic_weight(call, -1)
    if weight is not None:
        call.emit((call.input(0),), parameters={"weight": weight}, operator=_meant(call))


def _dynamic_convolution(call: OnnxCall) -> None:
    """x, w, their zero points; the result is in steps of both scales' product."""
    weight = _dynamic_weight(call, 0)
    if weight is not None:
        attributes = {**window_of(call, kernel_of(call)), "group": call.attribute("group", 1)}
        call.emit((call.input(0),), attributes, {"weight": weight}, operator=_meant(call))


def _binary(call: OnnxCall) -> None:
    """a, its scale and zero point, b, its, those of the result."""
    constant = next((index for index in (0, 3) if call.is_constant(index)), None)
    operand = None if constant is None else call.dequantized(constant, (constant + 1,), constant + 2)
    if constant is not None and operand is None:
        return
    parameters = {} if operand is None else {"operand": operand}
    call.emit(call.varying((0, 3)), parameters=parameters, operator=_meant(call))


def _global_average(call: OnnxCall) -> None:
    rank = call.rank(0)
    last = bool(call.attribute("channels_last", 0))
    axes = None if rank is None else tuple(range(1, rank - 1) if last else range(2, rank))
    call.emit((call.input(0),), {"axes": axes, "keepdims": True}, operator="ReduceMean")


def _concatenation(call: OnnxCall) -> None:
    """The result's scale and zero point, then each operand with its own."""
    places = range(2, call.count, 3)
    if any(call.is_constant(index) for index in places):
        return
    axis = call.axis(int(call.attribute("axis")), 2)
    call.emit([call.input(index) for index in places], {"axis": axis}, operator=_meant(call))


def _meant(call: OnnxCall) -> str:
    """What an operator of integers computes of the real numbers meant, by its name."""
    return call.operator.removeprefix("QLinear").removesuffix("Integer")


RULES: Mapping[str, Callable[[OnnxCall], None]] = {
    "ConvInteger": _dynamic_convolution,
    "MatMulInteger": _dynamic_matmul,
    "QLinearConv": _convolution,
    "QLinearMatMul": _matmul,
    "com.microsoft.QGemm": _gemm,
    "com.microsoft.QLinearAdd": _binary,
    "com.microsoft.QLinearConcat": _concatenation,
    "com.microsoft.QLinearGlobalAveragePool": _global_average,
    "com.microsoft.QLinearMul": _binary,
}

# Products of integers that are quantized as the network runs: the scale of their weights stands behind them.

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

"""ONNX's operators that compute with integers in the vocabulary: what they compute with the real numbers meant."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from conrepair.graph.layer_graph import Parameter
from conrepair.networks.onnx_call import OnnxCall
from conrepair.networks.onnx_windows import kernel_of, window_of

__all__ = ["RULES"]

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


def _dynamic_matmul(call: OnnxCall) -> None:
    """a, b, their zero points; the result is in steps of both scales' product."""
    weight = call.dynamic_weight(-1)
    if weight is not None:
        call.emit((call.input(0),), parameters={"weight": weight}, operator=_meant(call))


def _dynamic_convolution(call: OnnxCall) -> None:
    """x, w, their zero points; the result is in steps of both scales' product."""
    weight = call.dynamic_weight(0)
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

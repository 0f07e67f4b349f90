"""ONNX's matrix products in the vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from conrepair.formats.networks.parts import operand_roles
from conrepair.formats.onnx.read.call import OnnxCall
from conrepair.ground.graph.layer_graph import Array, Attribute, Parameter


def _matmul(call: OnnxCall) -> None:
    call.emit(call.varying(), parameters=call.parameters({0: "left", 1: "weight"}))


def _gemm(call: OnnxCall) -> None:
    """Write alpha A B + beta C: a MatMul with a bias where B and C are constant, else a node for each step."""
    alpha, beta = float(call.attribute("alpha", 1.0)), float(call.attribute("beta", 1.0))
    flipped = {"transpose_a": bool(call.attribute("transA", 0)), "transpose_b": bool(call.attribute("transB", 0))}
    parameters: dict[str, Parameter] = {}
    attributes: dict[str, Attribute] = dict(flipped)
    written: dict[str, Attribute] = {"alpha": alpha, "beta": beta}
    for index, role, name in ((0, "left", "transpose_a"), (1, "weight", "transpose_b")):
        if call.is_constant(index):
            parameters[role] = _matrix(call, index, flipped[name], alpha)
            written["transA" if index == 0 else "transB"] = flipped[name]
            attributes[name] = False
            alpha = 1.0
    bias = _bias(call, beta)
    if bias is not None and alpha == 1.0:
        parameters["bias"] = bias
    added, shape = call.given(2) and "bias" not in parameters, call.output_shape()
    result = call.hide("product", shape) if added or alpha != 1.0 else call.outputs[0]
    call.emit(call.varying((0, 1)), attributes, parameters, [result], written, "MatMul")
    if alpha != 1.0:
        result = _scaled(call, result, alpha, call.hide("scaled", shape) if added else call.outputs[0])
    if added:
        _add(call, result, beta)


def _add(call: OnnxCall, product: str, beta: float) -> None:
    if call.is_constant(2):
        operand = call.parameter(2, lambda array: _times(array, beta))
        call.emit([product], parameters={"operand": operand}, operator="Add")
        return
    addend = call.input(2)
    if beta != 1.0:
        addend = _scaled(call, addend, beta, call.hide("scaled_C", call.shape(2)))
    call.emit([product, addend], operator="Add")


def _matrix(call: OnnxCall, index: int, flip: bool, factor: float) -> Parameter:
    shape = call.shape(index) or ()
    return call.parameter(
        index, lambda array: _times(array.T if flip else array, factor), shape[::-1] if flip else shape
    )


def _bias(call: OnnxCall, beta: float) -> Parameter | None:
    """C as a bias; None if it isn't the same for all rows."""
    shape, result = call.shape(2), call.output_shape()
    if not call.is_constant(2) or shape is None or result is None or any(size != 1 for size in shape[:-1]):
        return None
    return call.parameter(2, lambda array: _times(np.broadcast_to(array.reshape(-1), result[-1:]), beta), result[-1:])


def _times(array: Array, factor: float) -> Array:
    return array if factor == 1.0 else (array * factor).astype(array.dtype)


def _scaled(call: OnnxCall, given: str, factor: float, result: str) -> str:
    """Give the product with a factor the name of a result; that name."""
    dtype = call.output_dtype()
    operand = Parameter("", (), dtype, lambda: np.array(factor, dtype))
    call.emit([given], parameters={"operand": operand}, outputs=[result], operator="Mul")
    return result


def _einsum(call: OnnxCall) -> None:
    emit_pieces(call, {"equation": call.attribute("equation")})


def emit_pieces(call: OnnxCall, attributes: Mapping[str, Attribute]) -> None:
    """Add a node for an operator that has a list of inputs, some of them constant."""
    constants = [index for index in range(call.count) if call.is_constant(index)]
    parameters = dict(zip(operand_roles(len(constants)), map(call.parameter, constants), strict=True))
    call.emit([call.input(index) for index in range(call.count)], attributes, parameters)


RULES: Mapping[str, Callable[[OnnxCall], None]] = {"Einsum": _einsum, "Gemm": _gemm, "MatMul": _matmul}

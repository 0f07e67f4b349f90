"""ONNX's operators that compute each element by itself, in the vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce

import numpy as np
import onnx_ir

from conrepair.formats.onnx.read.call import OnnxCall
from conrepair.ground.graph.layer_graph import Array, Attribute, Parameter
from conrepair.ground.graph.operators import COMMUTATIVE, OPERATORS, WITH_OPERAND, family

_NUMPY_BROADCASTING = 7  # opset; before, an attribute said whether and where
_LIMIT = float(np.finfo(np.float32).max)  # what older opsets write where there is no limit


def _binary(call: OnnxCall) -> None:
    if call.opset < _NUMPY_BROADCASTING or (call.operator == "Mod" and call.attribute("fmod", 0)):
        return
    first = call.is_constant(0)
    parameters = {"operand": call.parameter(0 if first else 1)} if first or call.is_constant(1) else {}
    attributes: dict[str, Attribute] = {"constant_first": first and call.operator not in COMMUTATIVE}
    call.emit(call.varying(), attributes, parameters)


def _extreme(call: OnnxCall) -> None:
    """Min and Max of any number of operands; several constants are one."""
    constants = [index for index in range(call.count) if call.is_constant(index)]
    if call.count == 1:
        _identity(call)
    elif len(constants) < 2:
        parameters = {"operand": call.parameter(constants[0])} if constants else {}
        call.emit(call.varying(), parameters=parameters)
    else:
        arrays = [call.parameter(index) for index in constants]
        shape = np.broadcast_shapes(*(item.shape for item in arrays))

        def load() -> Array:
            return reduce(OPERATORS[call.operator].compute, [item.numpy() for item in arrays])

        combined = Parameter("", shape, arrays[0].dtype, load)
        call.emit(call.varying(), parameters={"operand": combined})


def _sum(call: OnnxCall) -> None:
    if call.count == 1:
        _identity(call)
    elif call.count == 2 and call.operator == "Sum":
        call.emit(call.varying(), parameters=call.parameters({0: "operand", 1: "operand"}), operator="Add")


def _clip(call: OnnxCall) -> None:
    limits: dict[str, Attribute] = {}
    for index, name in ((1, "min"), (2, "max")):
        given = call.attribute(name) if not call.given(index) else call.numbers(index)
        number = None if given is None else float(np.asarray(given).reshape(-1)[0])
        limits[name] = None if number is None or abs(number) >= _LIMIT else number
    call.emit([call.input(index) for index in range(3)], limits)


def _where(call: OnnxCall) -> None:
    call.emit(call.varying(), parameters=call.parameters({0: "condition", 1: "x", 2: "y"}))


def _identity(call: OnnxCall) -> None:
    call.emit([call.input(0)], outputs=call.outputs[:1], operator="Identity")


def _dropout(call: OnnxCall) -> None:
    training = call.numbers(2)
    if not (call.varies(2) or (training is not None and training.any()) or call.is_read(1)):
        _identity(call)


def _cast(call: OnnxCall) -> None:
    target = call.dtype(1) if call.operator == "CastLike" else onnx_ir.DataType(int(call.attribute("to")))
    if call.dtype(0) is not None and call.dtype(0) == target:
        _identity(call)
    else:
        call.emit(call.varying(), {"to": call.output_dtype()}, operator="Cast")


def _quick_gelu(call: OnnxCall) -> None:
    call.emit(call.varying(), {"alpha": float(call.attribute("alpha", 1.702))}, operator="Swish")


RULES: Mapping[str, Callable[[OnnxCall], None]] = {
    **{name: OnnxCall.emit_alike for name, item in OPERATORS.items() if item.operands == 1},
    **dict.fromkeys(WITH_OPERAND, _binary),
    **dict.fromkeys(("Cast", "CastLike"), _cast),
    "Clip": _clip,
    "Dropout": _dropout,
    "Identity": _identity,
    **dict.fromkeys(family("arithmetic.extreme"), _extreme),
    "PRelu": OnnxCall.emit_alike,
    "Sum": _sum,
    "Where": _where,
    "com.microsoft.Gelu": OnnxCall.emit_alike,
    "com.microsoft.QuickGelu": _quick_gelu,
}

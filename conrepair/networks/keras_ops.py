"""Functions of keras.ops that stand in a model's graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from conrepair.graph.layer_graph import Attribute, Parameter
from conrepair.graph.operators import COMMUTATIVE, FUNCTIONS, OPERATORS
from conrepair.networks.keras_parts import KerasCall, Rule, constant
from conrepair.networks.parts import LayerPart, slice_parts

__all__ = ["BINARY", "KINDS", "NAMES", "REDUCTIONS", "RULES"]

BINARY = {
    "Add": "Add",
    "Subtract": "Sub",
    "Multiply": "Mul",
    "Divide": "Div",
    "TrueDivide": "Div",
    "Power": "Pow",
    "Maximum": "Max",
    "Minimum": "Min",
    "Equal": "Equal",
    "Greater": "Greater",
    "GreaterEqual": "GreaterOrEqual",
    "Less": "Less",
    "LessEqual": "LessOrEqual",
    "LogicalAnd": "And",
    "LogicalOr": "Or",
    "LogicalXor": "Xor",
}
"""Functions of two tensors by their class; its name in small letters is the function of keras.ops."""

_UNARY = {
    "Absolute": "Abs",
    "Negative": "Neg",
    "Silu": "Swish",
    "HardSilu": "HardSwish",
    "LogicalNot": "Not",
    "StopGradient": "Identity",
    "Copy": "Identity",
    **{f"Arc{name[1:]}": name for name in FUNCTIONS if name.startswith("A")},
    **{name: name for name in (*FUNCTIONS, "Selu")},  # as far as Keras has a class of that name
}
REDUCTIONS = {name: f"Reduce{name}" for name in ("Mean", "Sum", "Max", "Min", "Prod")}
NAMES = {op: name for name, op in reversed({**BINARY, **_UNARY, **REDUCTIONS}.items())}
"""Keras's class for one of the vocabulary; of several, the one to write."""


def _is_tensor(argument: Any) -> bool:
    return isinstance(argument, keras.KerasTensor)


def _binary(op: str) -> Rule:
    def rule(call: KerasCall) -> list[LayerPart]:
        left, right = call.argument(0, "x1"), call.argument(1, "x2")
        if _is_tensor(left) and _is_tensor(right):
            return [LayerPart(op, {"constant_first": False}, reads=(call.position(left), call.position(right)))]
        known = right if _is_tensor(left) else left
        first = not _is_tensor(left) and op not in COMMUTATIVE
        return [LayerPart(op, {"constant_first": first}, {"operand": constant(known)})]

    return rule


def _reduction(op: str) -> Rule:
    def rule(call: KerasCall) -> list[LayerPart]:
        operation = call.operation
        if getattr(operation, "initial", None) is not None or getattr(operation, "dtype", None) is not None:
            raise ValueError("with an initial value or another type")
        return [LayerPart(op, {"axes": call.axes(operation.axis), "keepdims": bool(operation.keepdims)})]

    return rule


def _matmul(call: KerasCall) -> list[LayerPart]:
    left, right = call.argument(0, "x1"), call.argument(1, "x2")
    attributes: dict[str, Attribute] = {"transpose_a": False, "transpose_b": False}
    if _is_tensor(left) and _is_tensor(right):
        return [LayerPart("MatMul", attributes, {}, True, reads=(call.position(left), call.position(right)))]
    if not _is_tensor(left):
        raise ValueError("a constant times a tensor")
    return [LayerPart("MatMul", attributes, {"weight": constant(right)}, True)]


def _arg(op: str) -> Rule:
    def rule(call: KerasCall) -> list[LayerPart]:
        if call.operation.axis is None:
            raise ValueError("over all axes")
        axis = call.axis(call.operation.axis)
        return [LayerPart(op, {"axis": axis, "keepdims": bool(call.operation.keepdims)})]

    return rule


def _along(op: str) -> Rule:
    return lambda call: [LayerPart(op, {"axis": call.axis(call.operation.axis)})]


def _reshape(call: KerasCall) -> list[LayerPart]:
    return [LayerPart("Reshape", {"shape": call.outputs[0]})]


def _transpose(call: KerasCall) -> list[LayerPart]:
    axes = call.operation.axes
    perm = tuple(reversed(range(call.rank))) if axes is None else tuple(call.axis(axis) for axis in axes)
    return [LayerPart("Transpose", {"perm": perm})]


def _swap(call: KerasCall) -> list[LayerPart]:
    perm = list(range(call.rank))
    one, two = call.axis(call.operation.axis1), call.axis(call.operation.axis2)
    perm[one], perm[two] = two, one
    return [LayerPart("Transpose", {"perm": tuple(perm)})]


def _stack(call: KerasCall) -> list[LayerPart]:
    shape = call.outputs[0]
    if shape is None:
        raise ValueError("unknown rank")
    return [LayerPart("Stack", {"axis": int(call.operation.axis) % len(shape)})]


def _split(call: KerasCall) -> list[LayerPart]:
    axis = call.axis(call.operation.axis)
    shapes = [shape for shape in call.outputs if shape is not None]
    if len(shapes) < len(call.outputs):
        raise ValueError("unknown sizes")
    return [LayerPart("Split", {"axis": axis, "sizes": tuple(shape[axis] for shape in shapes)})]


def _cast(call: KerasCall) -> list[LayerPart]:
    return [LayerPart("Cast", {"to": str(keras.backend.standardize_dtype(call.operation.dtype))})]


def _clip(call: KerasCall) -> list[LayerPart]:
    return [LayerPart("Clip", {"min": float(call.operation.x_min), "max": float(call.operation.x_max)})]


def _pad(call: KerasCall) -> list[LayerPart]:
    pairs = np.broadcast_to(np.asarray(call.operation.pad_width), (call.rank, 2))
    value = call.argument(1, "constant_values")
    attributes: dict[str, Attribute] = {
        "pads": (*(int(begin) for begin in pairs[:, 0]), *(int(end) for end in pairs[:, 1])),
        "mode": {"constant": "constant", "reflect": "reflect", "symmetric": "symmetric"}[call.operation.mode],
        "value": 0.0 if value is None else float(value),
    }
    return [LayerPart("Pad", attributes)]


def _expand(call: KerasCall) -> list[LayerPart]:
    return [LayerPart("Expand", {"shape": call.outputs[0]})]


def _tile(call: KerasCall) -> list[LayerPart]:
    repeats = np.atleast_1d(call.operation.repeats)
    return [LayerPart("Tile", {"repeats": (1,) * (call.rank - len(repeats)) + tuple(map(int, repeats))})]


def _where(call: KerasCall) -> list[LayerPart]:
    roles = {role: call.argument(index, name) for index, (role, name) in enumerate(_CHOICES)}
    constants: dict[str, Parameter] = {
        role: constant(value) for role, value in roles.items() if not _is_tensor(value)
    }
    return [LayerPart("Where", {}, constants)]


_CHOICES = (("condition", "condition"), ("x", "x1"), ("y", "x2"))


def _take(call: KerasCall) -> list[LayerPart]:
    table, indices = call.argument(0, "x"), call.argument(1, "indices")
    axis = call.operation.axis
    if axis is None:
        raise ValueError("of a flat tensor")
    if _is_tensor(table):
        given = {} if _is_tensor(indices) else {"indices": constant(indices)}
        return [LayerPart("Gather", {"axis": call.axis(axis)}, given)]
    numbers = constant(table)
    return [LayerPart("Gather", {"axis": int(axis) % len(numbers.shape)}, {"table": numbers})]


def _get_item(call: KerasCall) -> list[LayerPart]:
    key = call.argument(1, "key")
    keys = key if isinstance(key, (tuple, list)) else [key]  # a file has a list
    return slice_parts(call.shapes[0], call.outputs[0], keys)


def _setting(op: str, read: Callable[[Any], Attribute] = float, **names: str) -> Rule:
    """An operator of one tensor, and Keras's argument for each attribute that isn't always the vocabulary's."""

    def rule(call: KerasCall) -> list[LayerPart]:
        said = {attribute: read(getattr(call.operation, name)) for attribute, name in names.items()}
        return [LayerPart(op, {**OPERATORS[op].attributes, **said})]

    return rule


_BY_NAME: dict[str, Rule] = {
    **{name: _binary(op) for name, op in BINARY.items()},
    **{name: _setting(op) for name, op in _UNARY.items()},
    **{name: _reduction(op) for name, op in REDUCTIONS.items()},
    **dict.fromkeys(("Reshape", "ExpandDims", "Squeeze", "Ravel"), _reshape),
    "Matmul": _matmul,
    "Argmax": _arg("ArgMax"),
    "Argmin": _arg("ArgMin"),
    "Concatenate": _along("Concat"),
    "Softmax": _along("Softmax"),
    "LogSoftmax": _along("LogSoftmax"),
    "Transpose": _transpose,
    "Swapaxes": _swap,
    "Stack": _stack,
    "Split": _split,
    "Cast": _cast,
    "Clip": _clip,
    "Pad": _pad,
    "BroadcastTo": _expand,
    "Tile": _tile,
    "Where": _where,
    "Take": _take,
    "GetItem": _get_item,
    "Relu6": lambda call: [LayerPart("Clip", {"min": 0.0, "max": 6.0})],
    "HardSigmoid": lambda call: [LayerPart("HardSigmoid", {"alpha": 1 / 6, "beta": 0.5})],
    "Gelu": _setting("Gelu", lambda approximate: "tanh" if approximate else "none", approximate="approximate"),
    "LeakyRelu": _setting("LeakyRelu", alpha="negative_slope"),
    **{name: _setting(name, alpha="alpha") for name in ("Celu", "Elu")},
    "HardShrink": _setting("Shrink", lambd="threshold"),
    "SoftShrink": _setting("Shrink", lambd="threshold", bias="threshold"),
    "Einsum": _setting("Einsum", str, equation="subscripts"),
}


KINDS: dict[str, type] = {
    name: getattr(module, name)
    for module in (
        *(getattr(keras.src.ops, name) for name in ("numpy", "nn", "core", "math")),
        keras.src.activations.activations,
    )
    for name in _BY_NAME
    if hasattr(module, name)
}
"""Keras's classes of functions by name."""

RULES: dict[type, Rule] = {kind: _BY_NAME[name] for name, kind in KINDS.items()}

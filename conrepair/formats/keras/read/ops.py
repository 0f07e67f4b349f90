"""Functions of keras.ops that stand in a model's graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from conrepair.formats.keras.read.parts import KerasCall, constant
from conrepair.formats.networks.parts import PAIRS, REDUCTIONS, LayerPart, Rules, slice_parts
from conrepair.ground.graph.layer_graph import Attribute, Parameter
from conrepair.ground.graph.operators import COMMUTATIVE, FUNCTIONS, OPERATORS, SOFTMAX

__all__ = ["BINARY", "KINDS", "NAMES", "REDUCTIONS", "RULES", "along", "shaped"]

BINARY = {**PAIRS, "Subtract": "Sub", "Multiply": "Mul", "Divide": "Div", "TrueDivide": "Div", "Power": "Pow"}
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
NAMES = {op: name for name, op in reversed({**BINARY, **_UNARY, **REDUCTIONS}.items())}
"""Keras's class for one of the vocabulary; of several, the one to write."""


_RULES = Rules()
"""By the names of Keras's classes."""


def _is_tensor(argument: Any) -> bool:
    return isinstance(argument, keras.KerasTensor)


def _binary(op: str, call: KerasCall) -> list[LayerPart]:
    left, right = call.argument(0, "x1"), call.argument(1, "x2")
    if _is_tensor(left) and _is_tensor(right):
        return [LayerPart(op, {"constant_first": False}, reads=(call.position(left), call.position(right)))]
    known = right if _is_tensor(left) else left
    first = not _is_tensor(left) and op not in COMMUTATIVE
    return [LayerPart(op, {"constant_first": first}, {"operand": constant(known)})]


def _reduction(op: str, call: KerasCall) -> list[LayerPart]:
    operation = call.operation
    if getattr(operation, "initial", None) is not None or getattr(operation, "dtype", None) is not None:
        raise ValueError("with an initial value or another type")
    return [LayerPart(op, {"axes": call.axes(operation.axis), "keepdims": bool(operation.keepdims)})]


def _with(
    read: Callable[[Any], Attribute] = float, **names: str | float
) -> Callable[[str, KerasCall], list[LayerPart]]:
    """An operator of one tensor; for attributes that aren't the vocabulary's Keras's argument, or a number."""

    def rule(op: str, call: KerasCall) -> list[LayerPart]:
        given = {key: read(getattr(call.operation, name)) for key, name in names.items() if isinstance(name, str)}
        return [LayerPart(op, {**OPERATORS[op].attributes, **names, **given})]

    return rule


_RULES.named(BINARY, _binary)
_RULES.named(_UNARY, _with())
_RULES.named(REDUCTIONS, _reduction)
_RULES.named({name: name for name in ("Celu", "Elu")}, _with(alpha="alpha"))
_RULES.of("LeakyRelu")(_with(alpha="negative_slope"))
_RULES.of("Gelu")(_with(lambda approximate: "tanh" if approximate else "none", approximate="approximate"))
_RULES.of("Shrink", "HardShrink")(_with(lambd="threshold"))
_RULES.of("Shrink", "SoftShrink")(_with(lambd="threshold", bias="threshold"))
_RULES.of("Einsum")(_with(str, equation="subscripts"))
_RULES.of("Cast")(_with(keras.backend.standardize_dtype, to="dtype"))
_RULES.of("Clip")(_with(min="x_min", max="x_max"))
_RULES.of("Clip", "Relu6")(_with(min=0.0, max=6.0))
_RULES.of("HardSigmoid")(_with(alpha=1 / 6, beta=0.5))


@_RULES.of("MatMul", "Matmul")
def _matmul(op: str, call: KerasCall) -> list[LayerPart]:
    left, right = call.argument(0, "x1"), call.argument(1, "x2")
    attributes: dict[str, Attribute] = {"transpose_a": False, "transpose_b": False}
    if _is_tensor(left) and _is_tensor(right):
        return [LayerPart(op, attributes, {}, True, reads=(call.position(left), call.position(right)))]
    if not _is_tensor(left):
        raise ValueError("a constant times a tensor")
    return [LayerPart(op, attributes, {"weight": constant(right)}, True)]


@_RULES.of("ArgMax", "Argmax")
@_RULES.of("ArgMin", "Argmin")
def _arg(op: str, call: KerasCall) -> list[LayerPart]:
    if call.operation.axis is None:
        raise ValueError("over all axes")
    axis = call.axis(call.operation.axis)
    return [LayerPart(op, {"axis": axis, "keepdims": bool(call.operation.keepdims)})]


@_RULES.of("Concat", "Concatenate")
def along(op: str, call: KerasCall) -> list[LayerPart]:
    """An operator along an axis."""
    return [LayerPart(op, {"axis": call.axis(call.operation.axis)})]


_RULES.named({name: name for name in SOFTMAX}, along)


@_RULES.of("Reshape", "Reshape", "ExpandDims", "Squeeze", "Ravel")
@_RULES.of("Expand", "BroadcastTo")
def shaped(op: str, call: KerasCall) -> list[LayerPart]:
    """An operator that gives numbers another shape."""
    return [LayerPart(op, {"shape": call.outputs[0]})]


@_RULES.of("Transpose")
def _transpose(op: str, call: KerasCall) -> list[LayerPart]:
    axes = call.operation.axes
    perm = tuple(reversed(range(call.rank))) if axes is None else tuple(call.axis(axis) for axis in axes)
    return [LayerPart(op, {"perm": perm})]


@_RULES.of("Transpose", "Swapaxes")
def _swap(op: str, call: KerasCall) -> list[LayerPart]:
    perm = list(range(call.rank))
    one, two = call.axis(call.operation.axis1), call.axis(call.operation.axis2)
    perm[one], perm[two] = two, one
    return [LayerPart(op, {"perm": tuple(perm)})]


@_RULES.of("Stack")
def _stack(op: str, call: KerasCall) -> list[LayerPart]:
    shape = call.outputs[0]
    if shape is None:
        raise ValueError("unknown rank")
    return [LayerPart(op, {"axis": int(call.operation.axis) % len(shape)})]


@_RULES.of("Split")
def _split(op: str, call: KerasCall) -> list[LayerPart]:
    axis = call.axis(call.operation.axis)
    shapes = [shape for shape in call.outputs if shape is not None]
    if len(shapes) < len(call.outputs):
        raise ValueError("unknown sizes")
    return [LayerPart(op, {"axis": axis, "sizes": tuple(shape[axis] for shape in shapes)})]


@_RULES.of("Pad")
def _pad(op: str, call: KerasCall) -> list[LayerPart]:
    pairs = np.broadcast_to(np.asarray(call.operation.pad_width), (call.rank, 2))
    value = call.argument(1, "constant_values")
    attributes: dict[str, Attribute] = {
        "pads": (*(int(begin) for begin in pairs[:, 0]), *(int(end) for end in pairs[:, 1])),
        "mode": {"constant": "constant", "reflect": "reflect", "symmetric": "symmetric"}[call.operation.mode],
        "value": 0.0 if value is None else float(value),
    }
    return [LayerPart(op, attributes)]


@_RULES.of("Tile")
def _tile(op: str, call: KerasCall) -> list[LayerPart]:
    repeats = np.atleast_1d(call.operation.repeats)
    return [LayerPart(op, {"repeats": (1,) * (call.rank - len(repeats)) + tuple(map(int, repeats))})]


@_RULES.of("Where")
def _where(op: str, call: KerasCall) -> list[LayerPart]:
    names = {"condition": "condition", "x": "x1", "y": "x2"}
    roles = {role: call.argument(index, name) for index, (role, name) in enumerate(names.items())}
    constants: dict[str, Parameter] = {
        role: constant(value) for role, value in roles.items() if not _is_tensor(value)
    }
    return [LayerPart(op, {}, constants)]


@_RULES.of("Gather", "Take")
def _take(op: str, call: KerasCall) -> list[LayerPart]:
    table, indices = call.argument(0, "x"), call.argument(1, "indices")
    axis = call.operation.axis
    if axis is None:
        raise ValueError("of a flat tensor")
    if _is_tensor(table):
        given = {} if _is_tensor(indices) else {"indices": constant(indices)}
        return [LayerPart(op, {"axis": call.axis(axis)}, given)]
    numbers = constant(table)
    return [LayerPart(op, {"axis": int(axis) % len(numbers.shape)}, {"table": numbers})]


@_RULES.of("Slice", "GetItem")
def _get_item(_: str, call: KerasCall) -> list[LayerPart]:
    key = call.argument(1, "key")
    keys = key if isinstance(key, (tuple, list)) else [key]  # a file has a list
    return slice_parts(call.shapes[0], call.outputs[0], keys)


KINDS: dict[str, type] = {
    name: getattr(module, name)
    for module in (
        *(getattr(keras.src.ops, name) for name in ("numpy", "nn", "core", "math")),
        keras.src.activations.activations,
    )
    for name in _RULES
    if hasattr(module, name)
}
"""Keras's classes of functions by name."""

RULES = {kind: _RULES[name] for name, kind in KINDS.items()}

"""Recurrent layers as their steps one behind the other, for formats that have no operator for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace

import numpy as np

from conrepair.formats.editing.operation import Operation, Sizes, Steps
from conrepair.ground.equations.expression import Expression, Term, parse
from conrepair.ground.graph.operators import FUNCTIONS, RECURRENT_ACTIVATIONS

_MOST_STEPS = 64  # more would make a file of nothing else

# What a step computes, by name, from `x`, which is multiplied with its weights already, and from the states before,
# `h` and `c`. `R0`, `b0` are the weights and the bias of the first gate's state, or of all gates'.


def _gates(source: str, names: Sequence[str], hidden: int) -> dict[str, str]:
    """Pieces of the last axis."""
    ends = [(place * hidden, place * hidden + hidden) for place in range(len(names))]
    return {
        name: f"Slice({source}, axes=(2,), starts=({start},), ends=({end},), steps=(1,))"
        for name, (start, end) in zip(names, ends, strict=True)
    }


def _lstm(bends: Sequence[str], hidden: int, linear: bool) -> dict[str, str]:
    gate, new, out = bends
    return {
        "all": "x + b0 + MatMul(h, weight=R0)",
        **_gates("all", "iofn", hidden),
        "c": f"{gate}(i) * {new}(n) + {gate}(f) * c",
        "h": f"{gate}(o) * {out}(c)",
    }


def _gru(bends: Sequence[str], hidden: int, linear: bool) -> dict[str, str]:
    gate, new = bends
    return {
        **_gates("x", ("xz", "xr", "xn"), hidden),
        "z": f"{gate}(xz + b0 + MatMul(h, weight=R0))",
        "r": f"{gate}(xr + b1 + MatMul(h, weight=R1))",
        "n": f"{new}(xn + r * (MatMul(h, weight=R2) + b2))"
        if linear
        else f"{new}(MatMul(r * h, weight=R2) + (xn + b2))",
        "h": "(1 - z) * n + z * h",
    }


def _rnn(bends: Sequence[str], hidden: int, linear: bool) -> dict[str, str]:
    return {"h": f"{bends[0]}(x + b0 + MatMul(h, weight=R0))"}


_CELLS: Mapping[str, Callable[[Sequence[str], int, bool], dict[str, str]]] = {"LSTM": _lstm, "GRU": _gru, "RNN": _rnn}


def _without(absent: Set[str], equation: Expression) -> Expression:
    """An equation in which names are zero: without them in sums, and without the products with them."""
    if not isinstance(equation, Term):
        return 0.0 if equation in absent else equation
    operands = [_without(absent, item) for item in equation.operands]
    left = [item for item in operands if item != 0.0]
    if len(left) == len(operands) or equation.operator not in {"Add", "Mul", "MatMul"}:
        return replace(equation, operands=tuple(operands))
    return left[0] if left and equation.operator == "Add" else 0.0


def unrolled(operation: Operation, shapes: Sequence[Sizes | None]) -> tuple[Operation, ...] | None:
    """One direction, of known steps, that begins with zeros; axes of one element are kept all along.

    Args:
        operation: LSTM, GRU or RNN.
        shapes: Of its operands.
    """
    op, given, numbers = operation.operator, operation.attributes, operation.parameters
    shape = shapes[0] if len(shapes) == 1 else None
    time = 1 if given.get("batch_first") else 0
    count = None if shape is None or len(shape) != 3 else shape[time]
    named = given.get("activations")
    bends = tuple(map(str, named)) if isinstance(named, tuple) else RECURRENT_ACTIVATIONS[op]
    one_way = (given.get("direction") or "forward") in {"forward", "reverse"}
    sayable = one_way and {*bends} <= {*FUNCTIONS} and {*numbers} <= {*"WRB"}
    if count is None or count > _MOST_STEPS or not sayable:
        return None
    weight, recurrent = numbers["W"][0], numbers["R"][0]
    biases = np.reshape(numbers.get("B", np.zeros(2 * len(weight), np.float32)), (2, -1))
    hidden, parts, steps = recurrent.shape[1], 3 if op == "GRU" else 1, Steps(1)
    product = {"weight": np.ascontiguousarray(weight.T), "bias": biases[0]}
    constants = {f"b{place}": part for place, part in enumerate(np.split(biases[1], parts))}
    absent = {"h", "c", *(name for name, bias in constants.items() if not bias.any())}
    constants |= {f"R{place}": np.ascontiguousarray(part.T) for place, part in enumerate(np.split(recurrent, parts))}
    texts = _CELLS[op](bends, hidden, bool(given.get("linear_before_reset")))
    cell = {name: parse(text) for name, text in texts.items()}
    read = steps.add("MatMul", 0, parameters=product)
    backwards = given.get("direction") == "reverse"
    states: list[int] = []
    places: dict[str, int] = {}
    for at in range(count)[::-1] if backwards else range(count):
        places["x"] = steps.add("Slice", read, axes=(time,), starts=(at,), ends=(at + 1,), steps=(1,))
        for name, equation in cell.items():
            places[name] = steps.write(_without(absent - places.keys(), equation), places, constants)
        states.append(places["h"])
    if given.get("return_sequences", True):
        steps.add("Concat", *(states[::-1] if backwards else states), axis=time)
    else:
        steps.add("Reshape", states[-1], shape=(-1, hidden))
    return tuple(steps.made)

"""Recurrent layers as their steps one behind the other, for formats that have no operator for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from conrepair.editors.operation import Operation, Sizes
from conrepair.graph.layer_graph import Array, Attribute
from conrepair.graph.operators import RECURRENT_ACTIVATIONS

__all__ = ["RECURRENT"]

_MOST_STEPS = 64  # more would make a file of nothing else
_BENDS = {"Sigmoid", "Tanh", "Relu", "Identity", "Softsign", "Softplus"}


class _Steps:
    """Operations in order; a place is an operand's, or behind those a result's."""

    def __init__(self) -> None:
        self.made: list[Operation] = []

    def add(
        self, operator: str, *inputs: int, parameters: Mapping[str, Array] | None = None, **attributes: Attribute
    ) -> int:
        self.made.append(Operation(operator, inputs, attributes, parameters or {}))
        return len(self.made)

    def cut(self, place: int, axis: int, start: int, end: int) -> int:
        """A piece of one axis."""
        return self.add("Slice", place, axes=(axis,), starts=(start,), ends=(end,), steps=(1,))

    def product(self, place: int, weight: Array, bias: Array | None = None) -> int:
        """With a weight of [out, in]."""
        given = {"weight": np.ascontiguousarray(weight.T)}
        return self.add("MatMul", place, parameters=given if bias is None else given | {"bias": bias})


def _unrolled(operation: Operation, shapes: Sequence[Sizes | None]) -> tuple[Operation, ...] | None:
    """One direction, of known steps, that begins with zeros; axes of one element are kept all along."""
    op, given, numbers = operation.operator, operation.attributes, operation.parameters
    shape = shapes[0] if len(shapes) == 1 else None
    time = 1 if given.get("batch_first") else 0
    count = None if shape is None or len(shape) != 3 else shape[time]
    named = given.get("activations")
    bends = tuple(map(str, named)) if isinstance(named, tuple) else RECURRENT_ACTIVATIONS[op]
    forward = (given.get("direction") or "forward") in {"forward", "reverse"}
    if count is None or count > _MOST_STEPS or not forward or not {*bends} <= _BENDS or not {*numbers} <= {*"WRB"}:
        return None
    weight, recurrent = numbers["W"][0], numbers["R"][0]
    biases = np.reshape(numbers.get("B", np.zeros(2 * len(weight), np.float32)), (2, -1))
    steps, cell = _Steps(), _CELLS[op](recurrent, biases[1], bends, bool(given.get("linear_before_reset")))
    read = steps.product(0, weight, biases[0])
    backwards = given.get("direction") == "reverse"
    states: list[int] = []
    carried: tuple[int, ...] = ()
    for at in range(count)[::-1] if backwards else range(count):
        carried = cell(steps, steps.cut(read, time, at, at + 1), carried)
        states.append(carried[0])
    if given.get("return_sequences", True):
        steps.add("Concat", *(states[::-1] if backwards else states), axis=time)
    else:
        steps.add("Reshape", states[-1], shape=(-1, recurrent.shape[1]))
    return tuple(steps.made)


_Cell = Callable[[_Steps, int, tuple[int, ...]], tuple[int, ...]]


def _parts(steps: _Steps, place: int, count: int, hidden: int) -> list[int]:
    return [steps.cut(place, 2, gate * hidden, (gate + 1) * hidden) for gate in range(count)]


def _lstm(recurrent: Array, bias: Array, bends: Sequence[str], linear: bool) -> _Cell:
    hidden = recurrent.shape[1]

    def cell(steps: _Steps, x: int, carried: tuple[int, ...]) -> tuple[int, ...]:
        x = steps.add("Add", x, parameters={"operand": bias.astype(np.float32)}) if bias.any() else x
        x = steps.add("Add", x, steps.product(carried[0], recurrent)) if carried else x
        into, out, forget, new = _parts(steps, x, 4, hidden)
        state = steps.add("Mul", steps.add(bends[0], into), steps.add(bends[1], new))
        if carried:
            state = steps.add("Add", state, steps.add("Mul", steps.add(bends[0], forget), carried[1]))
        return steps.add("Mul", steps.add(bends[0], out), steps.add(bends[2], state)), state

    return cell


def _gru(recurrent: Array, bias: Array, bends: Sequence[str], linear: bool) -> _Cell:
    hidden = recurrent.shape[1]
    own = {"operand": bias[2 * hidden :].astype(np.float32)}

    def cell(steps: _Steps, x: int, carried: tuple[int, ...]) -> tuple[int, ...]:
        update, reset, new = _parts(steps, x, 3, hidden)
        gates = []
        for place, values in enumerate((update, reset)):
            rows = slice(place * hidden, (place + 1) * hidden)
            values = steps.add("Add", values, parameters={"operand": bias[rows].astype(np.float32)})
            if carried:
                values = steps.add("Add", values, steps.product(carried[0], recurrent[rows]))
            gates.append(steps.add(bends[0], values))
        last = recurrent[2 * hidden :]
        if linear:
            back = steps.product(carried[0], last, bias[2 * hidden :]) if carried else None
            held = steps.add("Mul", gates[1], parameters=own) if back is None else steps.add("Mul", gates[1], back)
        else:
            held = steps.add("Add", new, parameters=own)
            new = steps.product(steps.add("Mul", gates[1], carried[0]), last) if carried else held
        if linear or carried:
            new = steps.add("Add", new, held)
        new = steps.add(bends[1], new)
        left = steps.add("Sub", gates[0], parameters={"operand": np.ones((), np.float32)}, constant_first=True)
        state = steps.add("Mul", left, new)
        if carried:
            state = steps.add("Add", state, steps.add("Mul", gates[0], carried[0]))
        return (state,)

    return cell


def _rnn(recurrent: Array, bias: Array, bends: Sequence[str], linear: bool) -> _Cell:
    def cell(steps: _Steps, x: int, carried: tuple[int, ...]) -> tuple[int, ...]:
        x = steps.add("Add", x, parameters={"operand": bias.astype(np.float32)}) if bias.any() else x
        x = steps.add("Add", x, steps.product(carried[0], recurrent)) if carried else x
        return (steps.add(bends[0], x),)

    return cell


_CELLS: Mapping[str, Callable[[Array, Array, Sequence[str], bool], _Cell]] = {"LSTM": _lstm, "GRU": _gru, "RNN": _rnn}

RECURRENT: Mapping[str, Callable[[Operation, Sequence[Sizes | None]], tuple[Operation, ...] | None]] = dict.fromkeys(
    _CELLS, _unrolled
)
"""Lowerings, by operator."""

"""Layers with weights as values: factors and offsets by channel behind them are folded into their numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from conrepair.ground.canonical.numbers import FOLDED, Array, Numbers, Stored
from conrepair.ground.canonical.operations import Operations
from conrepair.ground.canonical.values import Key, Operand
from conrepair.ground.canonical.views import Shape, View, axis_of, channels_first, channels_last

LAYERS = {"Conv": 0, "ConvTranspose": 1, "MatMul": -1}
"""Operators with weights, and the weights' axis of their results' channels."""
Weights = tuple[Stored, Stored | None]


def multiplied(made: Operations, x: View, weights: Weights, columns: int) -> View:
    """The product of rows with a matrix, with what's added to each row.

    Args:
        made: Makes values.
        x: Of any number of axes, of which the last one is multiplied.
        weights: Of shape [in, out], and [out].
        columns: How many results a row has.
    """
    rows = math.prod(x.shape[:-1])
    found = _layer(made, Key("MatMul", (x.reshaped((rows, x.shape[-1])),)), weights, (rows, columns))
    return found.reshaped((*x.shape[:-1], columns))


def convolved(
    made: Operations, op: str, x: View, weights: Weights, said: dict[str, Any], shapes: tuple[Shape, Shape]
) -> View:
    """A convolution, with its channels first.

    One that reads each place for itself is a product with a matrix, pads in front of it are its own, and axes of size
    1 along which it has no extent are none.

    Args:
        made: Makes values.
        op: "Conv" or "ConvTranspose".
        x: With its channels first.
        weights: As the vocabulary has them.
        said: The node's attributes.
        shapes: Of the weights and of the result.
    """
    pads, rank = said.get("pads"), len(x.shape)
    if isinstance(pads, tuple) and op == "Conv":
        x, more = made.around(x)
        pads = tuple(own + other for own, other in zip(pads, more, strict=True))
    if not isinstance(pads, tuple):
        return _layer(made, Key(op, (x,), _words(said)), weights, shapes[1])

    def is_kept(axis: int) -> bool:
        return axis < 2 or (x.shape[axis], shapes[0][axis], pads[axis - 2], pads[axis + rank - 4]) != (1, 1, 0, 0)

    kept = [axis for axis in range(rank) if is_kept(axis)]
    sizes, shape, around = (tuple(item[axis] for axis in kept) for item in (*shapes, x.shape))
    own = {name: tuple(item[axis - 2] for axis in kept[2:]) for name, item in said.items() if isinstance(item, tuple)}
    own["pads"] = tuple(pads[half + axis - 2] for half in (0, rank - 2) for axis in kept[2:])
    load, bias = weights[0].load, weights[1]
    weight, said, x = Stored(lambda: load().reshape(sizes)), {**said, **own}, x.reshaped(around)
    each = set(sizes[2:]) <= {1} and set(said.get("strides") or ()) <= {1} and not any(own["pads"])
    if op == "Conv" and each and said.get("group") == 1:
        rows = made.transposed(x, channels_last(len(kept)))
        matrix = Stored(lambda: load().reshape(sizes[:2]).T)
        found = made.transposed(multiplied(made, rows, (matrix, bias), sizes[0]), channels_first(len(kept)))
    else:
        found = _layer(made, Key(op, (x,), _words(said)), (weight, bias), shape)
    return found.reshaped(shapes[1])


def _words(said: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple((name, item) for name, item in sorted(said.items()) if item is not None)


def _layer(made: Operations, key: Key, weights: Weights, shape: Shape) -> View:
    weight, bias = weights
    known = made.numbers.number(weight), _offset(made.numbers, bias)
    return made.values.value(Key(key.op, key.operands, key.words, parameters=known), shape)


def _offset(numbers: Numbers, bias: Stored | None) -> int | None:
    """The number of a bias; of zeros None."""
    return None if bias is None or not bias.load().any() else numbers.number(bias)


def _of_layer(made: Operations, view: View) -> tuple[Key, int] | None:
    """What computes a view of all results of a layer, and their axis of channels; None of what's no layer."""
    key, shape = made.values.keys[view.value], made.values.shapes[view.value]
    grouped = key.op == "ConvTranspose" and dict(key.words).get("group") != 1
    if key.op not in LAYERS or not key.parameters or grouped or view.size != math.prod(shape):
        return None
    return key, len(shape) - 1 if key.op == "MatMul" else 1


def folded(made: Operations, op: str, one: Operand, two: Operand) -> View | None:
    """Arithmetic of a layer with a constant by channel, or with a number that's added, in the layer's own numbers.

    Returns:
        None where it's something else.
    """
    for view, other in ((one, two), (two, one)):
        layer = _of_layer(made, view) if isinstance(view, View) else None
        if layer is None or not isinstance(view, View) or (view is two and op in {"Sub", "Div"}):
            continue
        number = made.parameter_of(other)
        if number is not None and isinstance(other, View) and lies_along(made, view, other.shape):
            vector = _vector(made.numbers, number)
        elif not isinstance(other, View) and op in {"Add", "Sub"}:
            vector = _repeated(other, made.values.shapes[view.value][layer[1]])
        else:
            continue
        if op in {"Add", "Sub"}:
            return scaled(made, view, None, vector if op == "Add" else _changed(vector, np.negative))
        return scaled(made, view, vector if op == "Mul" else _changed(vector, np.reciprocal), None)
    return None


def _vector(numbers: Numbers, number: int) -> Stored:
    return Stored(lambda: numbers.load(number).reshape(-1).astype(np.float64))


def _repeated(number: float, size: int) -> Stored:
    return Stored(lambda: np.full(size, number))


def _changed(stored: Stored, change: Callable[[Array], Array]) -> Stored:
    return Stored(lambda: change(stored.load()))


def lies_along(made: Operations, view: View, constant: Shape) -> bool:
    """Whether a constant of some shape has a number for each channel of a layer, and lies along these in a view."""
    layer, axes, missing = _of_layer(made, view), view.axes(), len(view.shape) - len(constant)
    if layer is None or axes is None or missing < 0:
        return False
    channel = axis_of(made.values.shapes[view.value], layer[1])
    return [axes[missing + place] for place, size in enumerate(constant) if size > 1] == [(channel,)]


def scaled(made: Operations, view: View, factor: Stored | None, offset: Stored | None) -> View | None:
    """A layer whose results are multiplied, then moved, by channel; None of what's no layer.

    Args:
        made: Makes values.
        view: Of its results.
        factor: Of shape [channels]; None for 1.
        offset: Of the same shape; None for 0.
    """
    layer, numbers = _of_layer(made, view), made.numbers
    if layer is None:
        return None
    (key, _), (weight, bias) = layer, layer[0].parameters

    def times(number: int | None, axis: int) -> Array:
        array: Array = np.zeros(1) if number is None else numbers.load(number).astype(np.float64)
        around = [1] * array.ndim
        around[axis] = -1
        return array if factor is None else np.asarray(array * factor.load().reshape(around))

    def moved() -> Array:
        return np.asarray(times(bias, 0) + (0.0 if offset is None else offset.load()))

    def size() -> Array:
        return np.asarray(np.abs(times(bias, 0)) + (0.0 if offset is None else offset.magnitude()))

    multiplied_weight = Stored(lambda: times(weight, LAYERS[key.op]), roundings=FOLDED)
    own = weight if factor is None else numbers.number(multiplied_weight)
    offsets = None if bias is None and offset is None else _offset(numbers, Stored(moved, size, FOLDED))
    new = Key(key.op, key.operands, key.words, parameters=(own, offsets))
    return view.of(made.values.value(new, made.values.shapes[view.value]).value)


def sliced_layer(made: Operations, view: View, axis: int, start: int, end: int) -> View | None:
    """Some channels of a layer, as a layer of fewer; None where they are none."""
    layer, axes, numbers = _of_layer(made, view), view.axes(), made.numbers
    if layer is None or axes is None or dict(layer[0].words).get("group", 1) != 1:
        return None
    (key, channel), own, size = layer, made.values.shapes[view.value], end - start
    if axes[axis] != (axis_of(own, channel),):
        return None
    weight, bias = key.parameters
    part = Stored(lambda: np.take(numbers.load(weight or 0), range(start, end), LAYERS[key.op]))
    rest = None if bias is None else Stored(lambda: numbers.load(bias)[start:end])
    shape = (*own[:channel], size, *own[channel + 1 :])
    return view.resized(_layer(made, key, (part, rest), shape).value, axis_of(own, channel), size)

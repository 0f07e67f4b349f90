"""Which values a network's inputs are made for: what the operators say that read them first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from conrepair.ground.data.input_range import InputRange
from conrepair.ground.graph.input_texts import input_texts
from conrepair.ground.graph.layer_graph import LayerGraph, Node, Tensor
from conrepair.ground.graph.operators import LINEAR, OPERATORS, QUANTIZING, RECURRENT_ACTIVATIONS, WINDOWS, family

_MOVED = {*family("move"), *QUANTIZING}
_SAME = {*_MOVED, "MaxPool"}

Interval = tuple[float, float]


def intervals(nodes: Sequence[Node], known: Mapping[str, Interval]) -> dict[str, Interval]:
    """Follow ranges through operators that make each number of one: with constants, and those that only move them.

    Through those that only move them ranges are followed backwards, too.

    Args:
        nodes: In their order.
        known: Smallest and largest value by tensor.

    Returns:
        Those that are known, and those that follow.
    """
    found = dict(known)
    for node in nodes:
        if node.inputs and node.inputs[0] in found and node.outputs[0] not in found:
            made = _made(node, *found[node.inputs[0]])
            if made is not None:
                found[node.outputs[0]] = made
    for node in reversed(nodes):
        if node.op in _MOVED and node.inputs and node.outputs[0] in found:
            found.setdefault(node.inputs[0], found[node.outputs[0]])
    return found


def _made(node: Node, low: float, high: float) -> Interval | None:
    if node.op in _SAME:
        return low, high
    if node.op == "Relu":
        return max(low, 0.0), max(high, 0.0)
    operand, first = node.parameters.get("operand"), bool(node.attributes.get("constant_first"))
    if operand is None or node.op not in LINEAR or (node.op == "Div" and first):
        return None
    values, ends = operand.numpy().astype(np.float64).reshape(1, -1), np.array([[low], [high]])
    if node.op == "Div" and not values.all():
        return None
    made = OPERATORS[node.op].compute(*((values, ends) if first else (ends, values)))
    return float(made.min()), float(made.max())


_KEEPING = {"Identity", "Cast", *QUANTIZING}
_MOVING = {"Reshape", "Transpose", "Expand", "Slice", "Reverse"}
ASKING = frozenset(family("comparison"))
"""Operators that compare."""

_OF_SIGNS = {"Less", "GreaterOrEqual"}  # than 0: whether an index counts from the end
_LOGICAL = {name for name, item in OPERATORS.items() if item.logical}
_LAYERS = {
    *(*WINDOWS, *RECURRENT_ACTIVATIONS, "MatMul", "Concat", "Pad", "Resize"),
    *("LinearClassifier", "LinearRegressor", "SVMClassifier", "SVMRegressor"),
}
_WEIGHING = {"Softmax", "Attention"}
_LOOKED_UP = 4  # rank of numbers that an input is compared with
_KEYS = ("cats_int64s", "keys_int64s", "keys_floats")
_FEW = 64  # numbers that an input is compared with
_TREES = {"TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor"}
# Of their span, and of their size, that values lie around thresholds.
_BEYOND, _BESIDE, _LEAST_MARGIN = 0.25, 0.1, 1e-3
_MASKS_OUT = 1e3  # what's left out of a softmax has this or more taken from it
_BYTE = (0.0, 255.0)
_USUAL = ((-1.0, 1.0), (0.0, 1.0), _BYTE)
# What layers behind a preparation of inputs get: values around 0 that vary; ImageNet's blue reaches 2.64.
_LARGEST, _LEAST_SPREAD = 2.8, 0.5
_GRID = "how it's quantized"
_UNIFORM = math.sqrt(3)  # half of a uniform range, in its standard deviations

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Seen:
    """A tensor that is an input's values, each multiplied and shifted.

    Attributes:
        scale: Broadcasts with the tensor.
        shift: The same.
        aligned: Whether the axes are still the input's.
        by: Operators on the way that changed values.
    """

    scale: Numbers
    shift: Numbers
    aligned: bool = True
    by: tuple[str, ...] = ()

    def then(self, scale: object, shift: object, by: str) -> _Seen:
        """The range of an input after one more factor and offset."""
        factor = np.asarray(scale, np.float64)
        moved = self.shift * factor + np.asarray(shift, np.float64)
        return replace(self, scale=self.scale * factor, shift=moved, by=(*self.by, by))

    def backwards(self, low: float | Numbers, high: float | Numbers) -> tuple[Numbers, Numbers]:
        """The input's values that become a range of this tensor's."""
        ends = [(end - self.shift) / self.scale for end in (low, high)]
        return np.minimum(*ends), np.maximum(*ends)


@dataclass(frozen=True)
class _Found:
    """A range, and its rank: a table says more than a mask, that more than a limit, that more than a scale."""

    rank: int
    range: InputRange


def input_ranges(graph: LayerGraph) -> Mapping[str, InputRange]:
    """The values that inputs are made for, where the operators that read them say so.

    A table that an input is looked up in has so many rows; what's subtracted, times a large number, in front of a
    softmax is a mask; a quantization and a limit hold no other values; and what's subtracted and divided first
    (Rescaling, Normalization, a mean and a deviation) makes numbers around 0 of what it's made for: bytes, portions
    of 1, or a mean with so many deviations around it. Trees tell values from one another by the thresholds of theirs,
    and texts are those that are looked up.

    Args:
        graph: Of any format.

    Returns:
        By the name of the input's tensor; those that nothing is said about are left out.
    """
    numbers = [name for name in graph.inputs if graph.tensors[name].dtype != "object"]
    found = {name: list(_of_input(graph, graph.tensors[name])) for name in numbers}
    ranges = {name: _best(items, graph.tensors[name]) for name, items in found.items() if items}
    ranges = {name: replace(item, blank=item.mask and not weighs(graph, name)) for name, item in ranges.items()}
    return {**ranges, **input_texts(graph)}


def weighs(graph: LayerGraph, name: str) -> bool:
    """Whether a softmax depends on a tensor without a layer between: of a mask that is one, something has to be left.

    Args:
        graph: Of any format.
        name: Of the tensor.
    """
    layers = (output for node in graph.nodes if node.op in _LAYERS for output in node.outputs)
    feeding = graph.feeding({*graph.inputs, *layers})
    return any(name in feeding[node.outputs[0]] for node in graph.nodes if node.op in _WEIGHING)


def _best(found: Sequence[_Found], tensor: Tensor) -> InputRange:
    rank = min(item.rank for item in found)
    ranges = [item.range for item in found if item.rank == rank]
    best = min(ranges, key=lambda item: item.high) if rank == 0 else ranges[0]  # every table has to have the row
    values = [value for item in found if item.rank == _LOOKED_UP for values in item.range.values for value in values]
    if rank == _LOOKED_UP:
        best = replace(best, low=(min(item.low[0] for item in ranges),), high=(max(item.high[0] for item in ranges),))
    if values and not (best.mask or best.axis):
        held = dict.fromkeys(value for value in values if best.low[0] <= value <= best.high[0])
        best = replace(best, values=(tuple(held),))
    if tensor.is_real or best.whole:
        return best
    limits = np.iinfo(tensor.dtype)
    low, high = (
        tuple(float(turned(min(max(end, limits.min), limits.max))) for end in ends)
        for turned, ends in ((math.ceil, best.low), (math.floor, best.high))
    )
    return replace(best, low=low, high=high, whole=True)


def _of_input(graph: LayerGraph, tensor: Tensor) -> Iterator[_Found]:
    if tensor.stored is not None:
        yield _Found(2, replace(_scalar(*tensor.stored, _GRID), calibrated=True))
    if tensor.dtype == "bool":
        yield _Found(1, _mask("truth values"))
    if tensor.dtype == "uint8" and not tensor.is_real:
        yield _Found(3, _scalar(*_BYTE, "bytes"))
    waiting, seen = [(tensor.name, _Seen(np.ones(()), np.zeros(())))], {tensor.name}
    while waiting:
        name, values = waiting.pop()
        for node in graph.consumers.get(name, ()):
            behind = _behind(graph, tensor, node, name, values)
            yield from _limited(graph, tensor, node, name, values)
            if behind is None:
                yield from _prepared(tensor, values) if node.op in _LAYERS else ()
            elif node.outputs[0] not in seen:
                if _masks_out(behind):
                    yield _Found(1, _mask(" and ".join(dict.fromkeys(behind.by))))
                seen.add(node.outputs[0])
                waiting.append((node.outputs[0], behind))


def _limited(graph: LayerGraph, tensor: Tensor, node: Node, name: str, values: _Seen) -> Iterator[_Found]:
    """The values that a reader of an input, or of what was made of it, has a use for."""
    if node.op == "Gather" and "table" in node.parameters:
        axis = node.attributes.get("axis")
        size = node.parameters["table"].shape[axis if isinstance(axis, int) else 0]
        yield _Found(0, InputRange((0.0,), (size - 1.0,), f"{node.native} of {size} rows", whole=True))
    elif node.op in _TREES and tensor.is_real:
        yield from _thresholds(tensor, node, values)
    elif not tensor.is_real and _asks(node, name):
        yield _Found(1, _mask(node.native))
    elif not values.by and (numbers := _compared(node)):
        listed = node.attributes.get("zeros") == 0
        ends = min(-1.0, 2 * min(numbers)), max(1.0, 2 * max(numbers))
        known = _scalar(*(ends if tensor.is_real else (min(0.0, *numbers), max(numbers) + 1)), node.native)
        yield _Found(_LOOKED_UP, replace(known, values=(numbers,), listed=listed))
    elif node.op == "Clip":
        low, high = node.attributes.get("min"), node.attributes.get("max")
        if isinstance(low, int | float) and isinstance(high, int | float) and math.isfinite(high - low):
            yield _Found(2, _range(tensor, values, *values.backwards(low, high), node.native))
    elif node.op == "QuantizeLinear" and (stored := graph.tensors[node.outputs[0]].stored) is not None:
        found = _range(tensor, values, *values.backwards(*stored), _GRID)
        yield _Found(2, replace(found, calibrated=True))


def _compared(node: Node) -> tuple[float, ...]:
    """The numbers that a node compares what it reads with, or looks up."""
    if node.op in ASKING and "operand" in node.parameters:
        return tuple(map(float, node.parameters["operand"].numpy().reshape(-1)[:_FEW]))
    keys = [item for name in _KEYS if isinstance(item := node.attributes.get(name), tuple)]
    return tuple(float(value) for values in keys for value in values)


def _thresholds(tensor: Tensor, node: Node, values: _Seen) -> Iterator[_Found]:
    """The values that trees tell from one another: around the thresholds of each feature."""
    shape, places = tensor.shape, node.attributes.get("nodes_featureids")
    table = node.parameters["nodes_splits"].numpy() if "nodes_splits" in node.parameters else None
    thresholds = node.attributes.get("nodes_values") if table is None else tuple(table.tolist())
    modes = node.attributes.get("nodes_modes")
    if shape is None or not (isinstance(places, tuple) and isinstance(thresholds, tuple)):
        return
    inner = [mode != "LEAF" for mode in modes] if isinstance(modes, tuple) else [True] * len(places)
    if not any(inner) or not len(inner) == len(places) == len(thresholds):
        return
    features, numbers = (np.array(items, np.float64)[inner] for items in (places, thresholds))
    low, high = np.zeros(shape[-1]), np.ones(shape[-1])
    for feature in np.unique(features).astype(int):
        ends = numbers[features == feature].min(), numbers[features == feature].max()
        margin = max(_BEYOND * (ends[1] - ends[0]), _BESIDE * max(map(abs, ends)), _LEAST_MARGIN)
        low[feature], high[feature] = ends[0] - margin, ends[1] + margin
    found = _range(tensor, values, *values.backwards(low, high), node.native)
    if found.axis is not None and not values.by:  # the very number tells less from less or equal
        at = [tuple(numbers[features == feature].tolist()) for feature in range(shape[-1])]
        found = replace(found, values=tuple(at))
    yield _Found(3, found)


def _asks(node: Node, name: str) -> bool:
    """Whether a whole number is read as a truth value."""
    if node.op == "Cast":
        return node.attributes.get("to") == "bool"
    if node.op in ASKING and "operand" in node.parameters:
        operand = node.parameters["operand"].numpy()
        below = node.op in _OF_SIGNS and not node.attributes.get("constant_first")
        return operand.size == 1 and operand.item() in {0, 1} and not (below and operand.item() == 0)
    return node.op in _LOGICAL or (node.op == "Where" and node.inputs[0] == name)


def _prepared(tensor: Tensor, values: _Seen) -> Iterator[_Found]:
    """The values that become small numbers around 0, which vary, by a preparation of inputs that ends here."""
    if not values.by or _masks_out(values) or not np.all(values.scale) or not np.all(np.isfinite(values.scale)):
        return
    why = " and ".join(dict.fromkeys(values.by))
    for ends in _USUAL:
        one, other = (values.scale * end + values.shift for end in ends)
        if max(np.abs(one).max(), np.abs(other).max()) <= _LARGEST and np.abs(one - other).min() >= _LEAST_SPREAD:
            if ends != _USUAL[0]:
                yield _Found(3, _scalar(*ends, why))
            return
    mean, scale = np.broadcast_arrays(-values.shift / values.scale, np.abs(values.scale))
    if np.any(mean) or np.all(scale < 1):
        spread = np.abs(mean) if np.all(scale == 1) else _UNIFORM / scale
        yield _Found(3, _range(tensor, values, mean - spread, mean + spread, why))


def _masks_out(values: _Seen) -> bool:
    """Whether 1 becomes 0, and 0 a large negative number; or the other way round."""
    if values.scale.size != 1 or values.shift.size != 1 or not values.by or abs(values.scale.item()) < _MASKS_OUT:
        return False
    ends = sorted((values.shift.item(), (values.scale + values.shift).item()))
    return ends[1] == 0 and ends[0] <= -_MASKS_OUT


def _behind(graph: LayerGraph, tensor: Tensor, node: Node, name: str, values: _Seen) -> _Seen | None:
    """What a node makes of an input's values; None where it isn't these any more."""
    # A choice makes negative indices positive; of real numbers it's an activation.
    if node.op in _KEEPING or (node.op == "Where" and not tensor.is_real and node.inputs[0] != name):
        return values
    if node.op in _MOVING:
        return replace(values, aligned=False)
    if not tensor.is_real and _chooses(graph, node, name):
        return values
    step = _step(node)
    if step is None:
        return None
    scale, shift = (np.asarray(item, np.float64) for item in step)
    rank = len(graph.tensors[name].shape or ())
    if node.op == "BatchNormalization" and not node.channels_last and rank > 2:
        scale, shift = (item.reshape(-1, *[1] * (rank - 2)) for item in (scale, shift))
    return values.then(scale, shift, node.native)


def _chooses(graph: LayerGraph, node: Node, name: str) -> bool:
    """Whether a node is part of a choice of indices in pieces: each times its truth value, and the sum of both."""
    if "operand" in node.parameters or len(node.inputs) != 2:
        return False
    if node.op == "Mul":
        return any(other != name and _is_truth(graph, other) for other in node.inputs)
    parts = [graph.producers.get(item) for item in node.inputs]
    return node.op == "Add" and all(
        part is not None and part.op == "Mul" and any(_is_truth(graph, item) for item in part.inputs)
        for part in parts
    )


def _is_truth(graph: LayerGraph, name: str) -> bool:
    node = graph.producers.get(name)
    return node is not None and node.op == "Cast" and graph.tensors[node.inputs[0]].dtype == "bool"


def _step(node: Node) -> tuple[object, object] | None:
    """What an operator multiplies each value with, and then adds; None for other operators."""
    if node.op == "Neg":
        return -1.0, 0.0
    if node.op == "Scaler":
        offset, factor = (np.array(node.attributes.get(name) or 0.0, np.float64) for name in ("offset", "scale"))
        return factor, -offset * factor
    if node.op == "BatchNormalization":
        mean, variance = (node.parameters[role].numpy().astype(np.float64) for role in ("mean", "variance"))
        epsilon = node.attributes.get("epsilon")
        deviation = np.sqrt(np.maximum(variance + (epsilon if isinstance(epsilon, float) else 0.0), 1e-14))
        return 1 / deviation, -mean / deviation
    operand = node.parameters.get("operand")
    if operand is None or node.op not in LINEAR:
        return None
    number = operand.numpy().astype(np.float64)
    first = bool(node.attributes.get("constant_first"))
    if node.op == "Add":
        return 1.0, number
    if node.op == "Mul":
        return number, 0.0
    if node.op == "Sub":
        return (-1.0, number) if first else (1.0, -number)
    return None if first or not np.all(number) else (1 / number, 0.0)


def _range(tensor: Tensor, values: _Seen, low: Numbers, high: Numbers, why: str) -> InputRange:
    """A range with one pair of ends for all values, or one for each place along an axis of the input."""
    low, high = np.broadcast_arrays(np.atleast_1d(low), np.atleast_1d(high))
    rank = len(tensor.shape or ())
    wide = [axis for axis, size in enumerate(low.shape) if size > 1]
    if not wide:
        return _scalar(low.flat[0], high.flat[0], why)
    if len(wide) > 1 or not values.aligned or low.ndim > rank:
        return _scalar(low.min(), high.max(), why)
    lows, highs = (tuple(map(float, item.reshape(-1))) for item in (low, high))
    return InputRange(lows, highs, why, axis=wide[0] - low.ndim)


def _scalar(low: float, high: float, why: str) -> InputRange:
    return InputRange((float(low),), (float(high),), why)


def _mask(why: str) -> InputRange:
    return InputRange((0.0,), (1.0,), why, whole=True, mask=True)

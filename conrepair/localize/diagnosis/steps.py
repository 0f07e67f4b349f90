"""A region's nodes as steps: as they are written, or fused to the few that say the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from conrepair.graph.layer_graph import Array, Attribute, LayerGraph, Node, Parameter
from conrepair.localize.diagnosis.functions import Values, evaluate, is_elementwise, known_function
from conrepair.localize.diagnosis.region import Side

__all__ = ["MOVES", "Step", "as_written", "fused", "step_of", "with_functions"]

MOVES = frozenset({"Reshape", "Transpose", "Identity", "Expand"})
"""Operators that leave values what they are: conversions add and remove them freely."""

_WINDOWS = {"Conv", "MaxPool", "AveragePool"}
_LOWEST = -1e30  # what stands for minus infinity, that no value is smaller than
_LINEAR = {"Conv": 0, "ConvTranspose": 1, "MatMul": -1}


@dataclass(frozen=True)
class Step:
    """One or more nodes that compute one thing.

    Attributes:
        op: In the graph's vocabulary; ReLU is `Clip` here; "Function" for elementwise nodes that no operator says.
        attributes: As the vocabulary has them.
        parameters: By role.
        nodes: What it was made of, the one that it's called after first.
        inputs: Tensors.
        outputs: Tensors.
        channels_last: Where the channels are.
        values: On the grid, for an elementwise function.
    """

    op: str
    attributes: Mapping[str, Attribute]
    parameters: Mapping[str, Parameter]
    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    channels_last: bool = False
    values: Values | None = None

    @property
    def layers(self) -> tuple[str, ...]:
        """Names as they stand in the file; of what computes nothing last."""
        ordered = sorted(self.nodes, key=lambda node: node.op == "Identity")
        return tuple(dict.fromkeys(node.layer for node in ordered))

    @property
    def layer(self) -> str:
        """The first of them."""
        return self.layers[0]


def as_written(side: Side) -> list[Step]:
    """Each node a step."""
    return [step_of(node) for node in side.nodes]


def with_functions(side: Side) -> list[Step]:
    """Elementwise pieces as functions, each other node a step."""
    return [step for step in _functions(as_written(side), side) if step.op != "Identity"]


def fused(side: Side) -> list[Step]:
    """As few steps as possible: elementwise pieces as functions, folded normalizations, biases and pads."""
    steps = _functions(as_written(side), side)
    for fold in (_fold_pad, _fold_linear):
        steps = _folded(steps, side, fold)
    return [step for step in steps if step.op != "Identity"]


def step_of(node: Node) -> Step:
    """A node as a step of its own."""
    attributes: Mapping[str, Attribute] = dict(node.attributes)
    op = node.op
    if op == "Relu":
        op, attributes = "Clip", {"min": 0.0, "max": None}
    values = None
    if is_elementwise(node) and len(dict.fromkeys(node.inputs)) == 1:
        values = evaluate([node], node.inputs[0], node.outputs[0])
    return Step(op, attributes, node.parameters, (node,), node.inputs, node.outputs, node.channels_last, values)


def _functions(steps: Sequence[Step], side: Side) -> list[Step]:
    """Merge elementwise nodes that have one input together."""
    producers = {name: step for step in steps for name in step.outputs}
    merged: dict[int, Step] = {}
    gone: set[int] = set()
    for place in reversed(range(len(steps))):
        if place in gone or not is_elementwise(steps[place].nodes[0]):
            continue
        group = _grown(steps[place], producers, side)
        if group is None:
            continue
        nodes = [step.nodes[0] for step in steps if step in group]
        begin = next(iter(_outside(group)))
        values = evaluate(nodes, begin, steps[place].outputs[0])
        if values is None:
            continue
        known = known_function(values)
        op, attributes = (known[1], known[2]) if known else ("Function", {})
        if len(nodes) == 1 and not known:
            op, attributes = steps[place].op, steps[place].attributes
        parameters = {} if len(nodes) > 1 else steps[place].parameters
        gone.update(index for index, step in enumerate(steps) if step in group)
        gone.discard(place)
        merged[place] = Step(
            op, attributes, parameters, tuple(reversed(nodes)), (begin,), steps[place].outputs, values=values
        )
    return [merged.get(place, step) for place, step in enumerate(steps) if place not in gone]


def _grown(last: Step, producers: Mapping[str, Step], side: Side) -> list[Step] | None:
    """The largest group that ends at a step and reads one tensor."""
    group = [last]
    best = [last] if len(_outside(group)) == 1 else None
    while True:
        outputs = {name for step in group for name in step.outputs}
        for name in _outside(group):
            before = producers.get(name)
            if before is None or not is_elementwise(before.nodes[0]) or name in side.begins:
                continue
            readers = side.graph.consumers.get(name, ())
            if name not in side.graph.outputs and all(set(node.outputs) <= outputs for node in readers):
                group.append(before)
                break
        else:
            return best
        if len(_outside(group)) == 1:
            best = list(group)


def _outside(group: Iterable[Step]) -> dict[str, None]:
    group = list(group)
    inside = {name for step in group for name in step.outputs}
    return {name: None for step in group for name in step.inputs if name and name not in inside}


Fold = Callable[[Step, Step], Step | None]


def _folded(steps: Sequence[Step], side: Side, fold: Fold) -> list[Step]:
    """Fold pairs of a step and its only reader until nothing more can be."""
    result = list(steps)
    place = 0
    while place < len(result):
        second = result[place]
        first = next((step for step in result[:place] if second.inputs and second.inputs[0] in step.outputs), None)
        both = None
        if first is not None and len(second.inputs) == 1 and _read_once(first, side.graph):
            both = fold(first, second)
        if both is None or first is None:
            place += 1
            continue
        result[place] = both
        result.remove(first)
        place = max(place - 1, 0)
    return result


def _read_once(step: Step, graph: LayerGraph) -> bool:
    name = step.outputs[0]
    return len(graph.consumers.get(name, ())) == 1 and name not in graph.outputs


def _fold_pad(first: Step, second: Step) -> Step | None:
    """What a Pad puts in front of a window is its pads, where the window would take the same for them."""
    pads, own = first.attributes.get("pads"), second.attributes.get("pads")
    if first.op != "Pad" or first.attributes.get("mode") != "constant" or second.op not in _WINDOWS:
        return None
    if not isinstance(pads, tuple) or not isinstance(own, tuple):
        return None
    value = first.attributes.get("value")
    number = float(value) if isinstance(value, int | float) else 0.0
    attributes = dict(second.attributes)
    if second.op == "MaxPool":
        if number > _LOWEST:
            return None
    elif number:
        return None
    if second.op == "AveragePool":
        if any(own):
            return None
        attributes["count_include_pad"] = True
    rank = len(pads) // 2
    spatial = list(range(1, rank - 1)) if second.channels_last else list(range(2, rank))
    outer = [axis for axis in range(rank) if axis not in spatial]
    if any(pads[axis] or pads[axis + rank] for axis in outer) or len(own) != 2 * len(spatial):
        return None
    added = _integers([pads[axis] for axis in spatial] + [pads[axis + rank] for axis in spatial])
    if any(size < 0 for size in added):
        return None  # what's cut off isn't there for the window's own pads to bring back
    together = tuple(a + b for a, b in zip(added, _integers(own), strict=True))
    return replace(
        second,
        attributes={**attributes, "pads": together},
        nodes=(*second.nodes, *first.nodes),
        inputs=first.inputs,
    )


def _integers(values: Iterable[object]) -> list[int]:
    return [value for value in values if isinstance(value, int)]


def _fold_linear(first: Step, second: Step) -> Step | None:
    """A factor and an offset per output channel, behind a layer with weights, are its weights and bias."""
    if first.op not in _LINEAR or "weight" not in first.parameters:
        return None
    affine = _affine(second, first)
    if affine is None:
        return None
    axis = _LINEAR[first.op]
    weight, bias = first.parameters["weight"], first.parameters.get("bias")
    channels = _channels(first)

    def scaled_weight() -> Array:
        factor, _ = affine()
        array = weight.numpy()
        if first.op == "ConvTranspose" and factor.size not in (1, array.shape[1]):
            return _by_group(array, factor)
        shape = [1] * array.ndim
        shape[axis] = factor.size
        return np.asarray(array * factor.reshape(shape))

    def scaled_bias() -> Array:
        factor, offset = affine()
        start = np.zeros(channels) if bias is None else bias.numpy()
        return np.asarray(start * factor + offset)

    new = {
        "weight": Parameter(weight.name, weight.shape, "float32", scaled_weight),
        "bias": Parameter("" if bias is None else bias.name, (channels,), "float32", scaled_bias),
    }
    return replace(
        first,
        parameters={**first.parameters, **new},
        nodes=(*first.nodes, *second.nodes),
        outputs=second.outputs,
    )


def _by_group(weight: Array, factor: Array) -> Array:
    """Scale [in, out / group, ...] by a factor for each output."""
    groups = factor.size // weight.shape[1]
    blocks = weight.reshape(groups, -1, *weight.shape[1:])
    factors = factor.reshape(groups, 1, weight.shape[1], *[1] * (weight.ndim - 2))
    return np.asarray((blocks * factors).reshape(weight.shape))


def _channels(step: Step) -> int:
    shape = step.parameters["weight"].shape
    if step.op == "ConvTranspose":
        return int(shape[1]) * int(step.attributes.get("group") or 1)  # type: ignore[arg-type]
    return int(shape[_LINEAR[step.op]])


def _affine(step: Step, first: Step) -> Callable[[], tuple[Array, Array]] | None:
    """Reads the factor and offset per channel that a step is; None when it isn't that."""
    channels = _channels(first)
    parameters = step.parameters
    if step.op == "BatchNormalization" and not step.attributes.get("training_mode"):

        def normalization() -> tuple[Array, Array]:
            epsilon = float(step.attributes.get("epsilon") or 0.0)  # type: ignore[arg-type]
            values = {role: parameter.numpy().astype(np.float64) for role, parameter in parameters.items()}
            factor = values.get("scale", np.ones(channels)) / np.sqrt(values["variance"] + epsilon)
            return factor, values.get("bias", np.zeros(channels)) - values["mean"] * factor

        return normalization
    operand = parameters.get("operand")
    if operand is None or step.op not in {"Add", "Sub", "Mul", "Div"} or step.attributes.get("constant_first"):
        return None
    size = int(np.prod(operand.shape, dtype=np.int64))
    if size not in (1, channels) or (size == channels > 1 and not _along_channels(operand.shape, first, channels)):
        return None

    def arithmetic() -> tuple[Array, Array]:
        values = np.broadcast_to(operand.numpy().astype(np.float64).reshape(-1), (channels,))
        one, zero = np.ones(channels), np.zeros(channels)
        return {"Add": (one, values), "Sub": (one, -values), "Mul": (values, zero), "Div": (1 / values, zero)}[
            step.op
        ]

    return arithmetic


def _along_channels(shape: tuple[int, ...], step: Step, channels: int) -> bool:
    """Whether a constant of as many numbers as channels is broadcast along them."""
    if step.op == "MatMul" or step.channels_last:
        return shape[-1] == channels
    rank = len(step.parameters["weight"].shape)
    return len(shape) >= rank - 1 and shape[len(shape) - rank + 1] == channels

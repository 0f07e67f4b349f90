"""A recurrent layer in NumPy, and the forms that conversions give it by mistake."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from conrepair.ground.graph.layer_graph import Node
from conrepair.ground.graph.operators import OPERATORS, RECURRENT_ACTIVATIONS

Values = npt.NDArray[np.float64]

GATES: Mapping[str, tuple[str, ...]] = {
    "LSTM": ("input", "output", "forget", "cell"),
    "GRU": ("update", "reset", "new"),
    "RNN": ("state",),
}
"""Gates of a recurrent layer, in ONNX's order."""

PARTS = {"weight": "the input's weights are", "recurrent": "the recurrent weights are", "bias": "the bias is"}
"""Of a layer, with a verb."""

WAYS = ("forward", "backward")
"""Directions of a recurrent layer."""

_BENDS: Mapping[str, Mapping[str, Sequence[int]]] = {
    "LSTM": {"gates": [0], "cell and output": [1, 2], "cell": [1], "output": [2]},
    "GRU": {"gates": [0], "state": [1]},
    "RNN": {"state": [0]},
}  # what activations are for, and their places
_OTHERS = ("Identity", "Relu", "Sigmoid", "Tanh", "HardSigmoid")
_SLOPE = {"HardSigmoid": {"alpha": 1 / 6}}  # Keras's, PyTorch's


@dataclass(frozen=True, eq=False)
class Layer:
    """A recurrent layer of one direction without initial states.

    Attributes:
        op: LSTM, GRU or RNN.
        weight: [gates, hidden, in].
        recurrent: [gates, hidden, hidden].
        bias: [2, gates, hidden], of the input and of the state.
        activations: As ONNX has them.
        reverse: Whether it begins with the last step.
        linear_before_reset: Of a GRU, whether its reset gate is applied behind the product.
        batch_first: Whether the batch is the first axis of what it reads, and steps the second.
    """

    op: str
    weight: Values
    recurrent: Values
    bias: Values
    activations: tuple[str, ...]
    reverse: bool
    linear_before_reset: bool
    batch_first: bool

    def run(self, x: Values) -> Values:
        """Its states [batch, steps, hidden], as ONNX defines them.

        Args:
            x: [batch, steps, in], or [steps, batch, in].
        """
        steps = x.swapaxes(0, 1) if self.batch_first else x
        hidden = self.recurrent.shape[1]
        state = cell = np.zeros((steps.shape[1], hidden))
        found = []
        for step in steps[::-1] if self.reverse else steps:
            state, cell = self._step(step, state, cell)
            found.append(state)
        return np.stack(found[::-1] if self.reverse else found, axis=1)

    def _step(self, x: Values, state: Values, cell: Values) -> tuple[Values, Values]:
        given = x @ self.weight.swapaxes(1, 2) + self.bias[0][:, None]  # [gates, batch, hidden]
        back = state @ self.recurrent.swapaxes(1, 2) + self.bias[1][:, None]
        if self.op == "LSTM":
            into, out, forget, new = given + back
            cell = self._bent(0, forget) * cell + self._bent(0, into) * self._bent(1, new)
            return self._bent(0, out) * self._bent(2, cell), cell
        if self.op == "RNN":
            return self._bent(0, given[0] + back[0]), cell
        update, reset = self._bent(0, given[:2] + back[:2])
        if not self.linear_before_reset:
            back[2] = (reset * state) @ self.recurrent[2].T + self.bias[1, 2]
        new = self._bent(1, given[2] + (reset * back[2] if self.linear_before_reset else back[2]))
        return (1 - update) * new + update * state, cell

    def _bent(self, place: int, values: Values) -> Values:
        name = self.activations[place]
        return np.asarray(OPERATORS[name].compute(values, **_SLOPE.get(name, {})))


Layers = tuple[Layer, ...]
"""The parameters of a recurrent layer, for each direction."""


def layers_of_node(node: Node) -> Layers | None:
    """A node as a layer for each of its directions; None where its weights aren't constant.

    States that it's given, and peepholes, aren't said: whoever runs it sees whether that's what the node does.

    Args:
        node: Of the vocabulary.
    """
    usual, given = RECURRENT_ACTIVATIONS.get(node.op), node.attributes
    if usual is None or not {"W", "R"} <= set(node.parameters):
        return None
    gates = len(GATES[node.op])
    weights, recurrent = (node.parameters[role].numpy().astype(np.float64) for role in "WR")
    biases = np.zeros((len(weights), 2 * weights.shape[1]))
    if "B" in node.parameters:
        biases += node.parameters["B"].numpy()
    directions = {"bidirectional": (False, True), "reverse": (True,)}.get(str(given.get("direction")), (False,))
    named = given.get("activations")
    activations = tuple(map(str, named)) if isinstance(named, tuple) else usual
    if len(activations) == len(usual):
        activations *= len(directions)
    if len(activations) != len(usual) * len(directions) or not {*activations} <= {*OPERATORS}:
        return None
    return tuple(
        Layer(
            node.op,
            weights[place].reshape(gates, -1, weights.shape[-1]),
            recurrent[place].reshape(gates, -1, recurrent.shape[-1]),
            biases[place].reshape(2, gates, -1),
            activations[place * len(usual) : (place + 1) * len(usual)],
            reverse,
            bool(given.get("linear_before_reset")),
            bool(given.get("batch_first")),
        )
        for place, reverse in enumerate(directions)
    )


def recurrent_layer(nodes: Sequence[Node]) -> tuple[Node, Layers] | None:
    """The one recurrent layer among nodes; None where there's none, several, or one that can't be said so."""
    found = [node for node in nodes if node.op in GATES]
    layers = layers_of_node(found[0]) if len(found) == 1 else None
    return None if layers is None else (found[0], layers)


def wrong_forms(layers: Layers) -> Iterator[tuple[str, Layers]]:
    """What may have become of a layer, in words, and that; the layers of both directions are exchanged first.

    Args:
        layers: As they should be, for each direction.
    """
    if len(layers) == len(WAYS) and layers[0].weight.shape == layers[1].weight.shape:
        yield from _exchanged(*layers)
    for forms in zip(*map(_wrong_forms, layers), strict=True):
        for changed, where in directions(layers):
            other = tuple(forms[at][1] if at in changed else layer for at, layer in enumerate(layers))
            yield forms[0][0] + where, other


def _exchanged(one: Layer, two: Layer) -> Iterator[tuple[str, Layers]]:
    """The two directions, or one sort of their numbers, in each other's place."""
    yield "the directions are exchanged", (two, one)
    sorts = {"the numbers": tuple(PARTS)} | {words.rsplit(" ", 1)[0]: (name,) for name, words in PARTS.items()}
    for what, names in sorts.items():
        parts = [{name: getattr(layer, name) for name in names} for layer in (two, one)]
        yield f"{what} of both directions are exchanged", (replace(one, **parts[0]), replace(two, **parts[1]))


def directions(layers: Layers) -> Iterator[tuple[range, str]]:
    """Which directions may be changed: all, or one, which words name."""
    yield range(len(layers)), ""
    for place, way in enumerate(WAYS if len(layers) > 1 else ()):
        yield range(place, place + 1), f", in the {way} direction"


def _wrong_forms(layer: Layer) -> Iterator[tuple[str, Layer]]:
    """What may have become of a layer, in words, and that.

    Args:
        layer: As it should be.
    """
    names = GATES[layer.op]
    places = range(len(names))
    for order in sorted(itertools.permutations(places), key=lambda order: sum(map(int.__ne__, order, places))):
        if order != tuple(places):
            at = list(order)
            reordered = replace(layer, weight=layer.weight[at], recurrent=layer.recurrent[at], bias=layer.bias[:, at])
            yield _in_words(names, order), reordered
    for (bent, bends), other in itertools.product(_BENDS[layer.op].items(), _OTHERS):
        changed = tuple(other if place in bends else name for place, name in enumerate(layer.activations))
        given = layer.activations[bends[0]]
        became = f" ({given}) is lost" if other == "Identity" else f" is {other} in place of {given}"
        if changed != layer.activations:
            yield f"the activation of {bent}{became}", replace(layer, activations=changed)
    if layer.op == "GRU":
        side = "in front of" if layer.linear_before_reset else "behind"
        yield (
            f"the reset gate is applied {side} the product with the recurrent weights",
            replace(layer, linear_before_reset=not layer.linear_before_reset),
        )
    yield "steps are taken in the other direction", replace(layer, reverse=not layer.reverse)
    for name, words in (("weight", "the input's weights"), ("recurrent", "the recurrent weights")):
        for one, two in itertools.combinations(places, 2):
            swapped = [two if place == one else one if place == two else place for place in places]
            yield f"{_in_words(names, swapped)} in {words}", replace(layer, **{name: getattr(layer, name)[swapped]})
    yield "the recurrent weights are transposed", replace(layer, recurrent=layer.recurrent.swapaxes(1, 2))
    yield "the state isn't carried from step to step", replace(layer, recurrent=np.zeros_like(layer.recurrent))
    yield "the bias is lost", replace(layer, bias=np.zeros_like(layer.bias))


def _in_words(names: Sequence[str], order: Sequence[int]) -> str:
    moved = [place for place, other in enumerate(order) if place != other]
    if len(moved) == 2:
        return f"the {names[moved[0]]} gate and the {names[moved[1]]} gate are exchanged"
    listed = ", ".join(names[place] for place in order)
    return f"the gates stand in another order ({listed} in place of {', '.join(names)})"

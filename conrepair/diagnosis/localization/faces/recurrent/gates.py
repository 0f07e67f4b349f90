"""Which numbers of a target are a recurrent layer's, in whichever order and way its gates are stored there."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from conrepair.diagnosis.localization.faces.numbers.changed import Values
from conrepair.diagnosis.localization.faces.numbers.parameters import compare_parameters
from conrepair.diagnosis.localization.faces.recurrent.recurrence import PARTS, WAYS, Layer, Layers
from conrepair.diagnosis.localization.faces.region import Finding
from conrepair.diagnosis.localization.numbers import naming
from conrepair.ground.graph.layer_graph import Node, Parameter


@dataclass(frozen=True)
class Carried:
    """A constant of a target that holds numbers of a recurrent layer.

    Attributes:
        node: Of the target.
        role: Of the constant.
        parameter: The constant.
        right: What it should hold, in its shape.
        part: Which numbers of the layer: "weight", "recurrent" or "bias".
        direction: Of the layer's, 0 or 1.
    """

    node: Node
    role: str
    parameter: Parameter
    right: Values
    part: str
    direction: int

    @property
    def wanted(self) -> Parameter:
        """What it should hold, as a parameter."""
        return Parameter(self.part, self.right.shape, "float32", lambda: self.right)


@dataclass(frozen=True)
class _Gate:
    """The numbers of one gate: [hidden, in], or [hidden], as they're to be found and as they should be."""

    sought: Values
    right: Values
    part: str
    direction: int


def carried_gates(sought: Sequence[Layer], right: Sequence[Layer], nodes: Sequence[Node]) -> Iterator[Carried]:
    """Find the numbers of a layer in those of a target, gate by gate.

    Gates stand one behind the other along an axis, or each has a constant of its own; matrices are [out, in] or
    turned.

    Args:
        sought: What the target has, as far as that's known, for each direction.
        right: What it should have.
        nodes: Of the target.
    """
    gates = [gate for place, layers in enumerate(zip(sought, right, strict=True)) for gate in _gates(*layers, place)]
    hidden = right[0].recurrent.shape[1]
    for node in nodes:
        for role, parameter in node.parameters.items():
            if parameter.bits or "float" in parameter.dtype:
                yield from _found(node, role, parameter, gates, hidden)


def gate_differences(source: Node, layers: Layers, nodes: Sequence[Node]) -> Iterator[Finding]:
    """Numbers of a recurrent layer that a target has otherwise, beyond what its bits explain.

    Args:
        source: The layer.
        layers: That, for each direction.
        nodes: Of the target.
    """
    for item in carried_gates(layers, layers, nodes):
        found = compare_parameters(item.wanted, item.parameter)
        if found is not None:
            direction = f", in the {WAYS[item.direction]} direction" if len(layers) > 1 else ""
            words, layer = f"{PARTS[item.part]} {found.words}{direction}", item.node.layer
            rule = words if found.plain else ""
            words += f" (`{layer}`, of the {source.op} `{source.layer}`)"
            yield Finding(found.kind, words, (source.layer,), (layer,), rule=rule)


def _gates(sought: Layer, right: Layer, direction: int) -> Iterator[_Gate]:
    arrays = [
        ("weight", sought.weight, right.weight),
        ("recurrent", sought.recurrent, right.recurrent),
        ("bias", sought.bias.sum(0), right.bias.sum(0)),  # both of them may be one
        *(("bias", *biases) for biases in zip(sought.bias, right.bias, strict=True)),
    ]
    for part, *both in arrays:
        yield from (_Gate(one, two, part, direction) for one, two in zip(*both, strict=True))


def _found(node: Node, role: str, parameter: Parameter, gates: Sequence[_Gate], hidden: int) -> Iterator[Carried]:
    sizes = [size for size in parameter.shape if size != 1] or [1]
    widths = {gate.sought.size for gate in gates}
    if len(sizes) > 2 or not any(np.prod(sizes) % width == 0 for width in widths):
        return
    given = parameter.numpy().astype(np.float64).reshape(sizes)
    for axis in range(given.ndim):
        if given.shape[axis] % hidden:
            continue
        pieces = np.split(given, given.shape[axis] // hidden, axis)
        chosen = [_likest(piece, axis, gates, alone=len(pieces) == 1) for piece in pieces]
        found = [item for item in chosen if item is not None]
        parts = {(gate.part, gate.direction) for gate, _ in found}
        if len(found) == len(pieces) and len(parts) == 1:
            right = np.concatenate([gate.right.T if turned else gate.right for gate, turned in found], axis)
            ((part, direction),) = parts
            yield Carried(node, role, parameter, right.reshape(parameter.shape), part, direction)
            return


def _likest(piece: Values, axis: int, gates: Sequence[_Gate], *, alone: bool) -> tuple[_Gate, bool] | None:
    """The gate whose numbers a piece has, and whether it's turned; none where no gate is like it.

    Args:
        piece: Of a constant.
        axis: Along which pieces stand: outputs.
        gates: All of them.
        alone: Whether it's the whole constant: then nothing tells which axis that is.
    """
    best: tuple[float, _Gate, bool] | None = None
    least = min(max(naming.ALIKE, naming.DEVIATIONS / math.sqrt(piece.size)), naming.SURELY)
    for gate, turned in itertools.product(gates, (False, True)):
        values = gate.sought.T if turned else gate.sought
        size = float(np.linalg.norm(values) * np.linalg.norm(piece))
        if values.shape == piece.shape and size:
            alike = float(np.vdot(values, piece)) / size
            if alike > (best[0] if best else least):
                best = alike, gate, turned if alone else axis == 1
    return None if best is None else best[1:]

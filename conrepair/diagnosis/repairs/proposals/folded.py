"""Solve for the parameters of a layer in pieces, where the source has the layer in one.

A convolution and the normalization behind it compute f (W x + b) + o, channel by channel; the source has W' x + b'.
Whichever of W, b, and the normalization's numbers is wrong can be solved for when the others are right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from conrepair.diagnosis.localization.faces.steps.folding import affine_of
from conrepair.diagnosis.localization.faces.steps.steps import Step, step_of
from conrepair.diagnosis.repairs.edits import SetParameter
from conrepair.diagnosis.repairs.proposals.proposal import Proposal, ProposalSetting, set_to
from conrepair.ground.graph.layer_graph import Array, Node, Parameter

_AXIS = {"Conv": 0, "MatMul": -1}
_CLOSE = 1e-5

Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Layer:
    """A layer of the target in pieces.

    Attributes:
        node: With the weights.
        pieces: Behind it, with the factor and offset that each is.
        weight: As the source has it, channels first.
        bias: The same.
    """

    node: Node
    pieces: tuple[tuple[Node, Values, Values], ...]
    weight: Values
    bias: Values

    def affine(self, begin: int = 0) -> tuple[Values, Values]:
        """The factor and offset of all parts of the normalization from one on."""
        factor, offset = np.ones(len(self.bias)), np.zeros(len(self.bias))
        for _, scale, shift in self.pieces[begin:]:
            factor, offset = factor * scale, offset * scale + shift
        return factor, offset


def folded_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """One parameter of a layer in pieces; those first whose numbers are all one, as lost ones are."""
    yield from (
        (edit,)
        for edit, held in folded_parameters(setting)
        if not np.allclose(edit.values, held.numpy().reshape(edit.values.shape), rtol=_CLOSE, atol=0)
    )


def folded_parameters(setting: ProposalSetting) -> Iterator[tuple[SetParameter, Parameter]]:
    """What one parameter of a layer in pieces should be, given all others of its pieces.

    Returns:
        The right numbers in the editor's graph, and the parameter.
    """
    for ours, theirs in setting.paired:
        if ours.op != theirs.op or len(theirs.nodes) < 2:
            continue
        layer = _layer(ours, theirs)
        if layer is None:
            continue
        solved = sorted(_solutions(layer), key=lambda item: np.ptp(item[0].parameters[item[1]].numpy()) > 0)
        for node, role, values in solved:
            edit = set_to(setting.in_editor.of(node), role, values.astype(np.float32))
            if edit is not None and np.isfinite(values).all():
                yield edit, node.parameters[role]


def _layer(ours: Step, theirs: Step) -> _Layer | None:
    node, *behind = theirs.nodes
    if ours.op not in _AXIS or "weight" not in node.parameters or "weight" not in ours.parameters:
        return None
    axis, first = _AXIS[ours.op], step_of(node)
    weight = np.moveaxis(ours.parameters["weight"].numpy().astype(np.float64), axis, 0)
    bias = ours.parameters.get("bias")
    pieces = []
    for item in behind:
        affine = affine_of(step_of(item), first)
        if affine is None:
            return None
        pieces.append((item, *affine))
    zero = np.zeros(weight.shape[0])
    if node.parameters["weight"].shape != ours.parameters["weight"].shape:
        return None
    return _Layer(node, tuple(pieces), weight, zero if bias is None else bias.numpy().astype(np.float64))


def _solutions(layer: _Layer) -> Iterator[tuple[Node, str, Array]]:
    """Parameters that, alone, would make the layer the source's: nodes, roles, numbers."""
    axis = _AXIS[layer.node.op]
    factor, offset = layer.affine()
    own = np.moveaxis(layer.node.parameters["weight"].numpy().astype(np.float64), axis, 0)
    held = layer.node.parameters.get("bias")
    bias = np.zeros(len(factor)) if held is None else held.numpy().astype(np.float64)
    per_channel = (-1, *[1] * (own.ndim - 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        yield layer.node, "weight", np.moveaxis(layer.weight / factor.reshape(per_channel), 0, axis)
        if held is not None:
            yield layer.node, "bias", (layer.bias - offset) / factor
        flat, wanted = own.reshape(len(own), -1), layer.weight.reshape(len(own), -1)
        ratio = np.einsum("ij,ij->i", flat, wanted) / np.einsum("ij,ij->i", flat, flat)
        for place, (node, scale, _) in enumerate(layer.pieces):
            later, last = layer.affine(place + 1)
            before = _before(layer, place, bias)
            # What this piece should be, given all others: a factor from the weights, an offset from the biases.
            right = ratio * scale / factor
            yield from _of_piece(node, scale, right, (layer.bias - last) / later, before)


def _before(layer: _Layer, place: int, bias: Values) -> Values:
    """The layer's bias as it arrives at a piece."""
    for _, scale, shift in layer.pieces[:place]:
        bias = bias * scale + shift
    return bias


def _of_piece(
    node: Node, scale: Values, right: Values, wanted: Values, arriving: Values
) -> Iterator[tuple[Node, str, Array]]:
    """Numbers of one piece, of which the factor should be `right` and what `arriving` becomes `wanted`."""
    if node.op != "BatchNormalization":
        if "operand" in node.parameters and node.op == "Add":
            yield node, "operand", wanted - arriving * scale
        return
    values = {role: parameter.numpy().astype(np.float64) for role, parameter in node.parameters.items()}
    epsilon = float(node.attributes.get("epsilon") or 0.0)  # type: ignore[arg-type]
    mean, variance = values["mean"], values["variance"]
    beta = values.get("bias", np.zeros_like(mean))
    gamma = values.get("scale", np.ones_like(mean))
    yield node, "mean", arriving - (wanted - beta) / scale
    if "bias" in values:
        yield node, "bias", wanted - (arriving - mean) * scale
    if "scale" in values:
        yield node, "scale", right * np.sqrt(variance + epsilon)
    yield node, "variance", (gamma / right) ** 2 - epsilon

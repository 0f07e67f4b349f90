"""Give a parameter the source's numbers; of a recurrent layer, wherever the target has them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from conrepair.diagnosis.localization.faces.numbers.changed import portion_of
from conrepair.diagnosis.localization.faces.numbers.parameters import compare_parameters
from conrepair.diagnosis.localization.faces.recurrent.gates import carried_gates
from conrepair.diagnosis.localization.faces.recurrent.recurrence import recurrent_layer
from conrepair.diagnosis.localization.faces.recurrent.recurrent import form_of
from conrepair.diagnosis.localization.faces.recurrent.turns import odd_members, turns_of
from conrepair.diagnosis.localization.faces.steps.steps import Step
from conrepair.diagnosis.localization.judge.quantization import has_right_scales
from conrepair.diagnosis.repairs.edits import Graft, Requantize, SetAttributes, SetParameter
from conrepair.diagnosis.repairs.proposals.proposal import Proposal, ProposalSetting, set_to
from conrepair.formats.editing.operation import Operation
from conrepair.ground.graph.layer_graph import Array, Node
from conrepair.ground.graph.operators import OPERATORS


def parameter_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """One differing parameter alone, then all of a layer's; a lost bias in its own place."""
    for ours, theirs in setting.paired:
        if ours.op != theirs.op:
            continue
        node = setting.in_editor.of(theirs.nodes[0])
        if node is None or len(theirs.nodes) > 1:
            continue
        wanted = {role: wanted_parameter(ours, theirs, node, role) for role in ours.parameters}
        edits = {role: edit for role, edit in wanted.items() if edit is not None}
        bias_too = None if "bias" not in edits else edits["bias"].values
        for role, edit in edits.items():
            difference = compare_parameters(ours.parameters[role], theirs.parameters[role])
            other_grid = difference is not None and difference.of_grid
            if other_grid or not has_right_scales(edit.values, theirs.parameters[role]):
                yield (Requantize(node.name, role, edit.values, bias_too),)
        yield from ((edit,) for edit in edits.values())
        yield from _given_or_not(ours, theirs, node)
        if len(edits) > 1:
            yield tuple(edits.values())
        if (bias := _lost_bias(ours, theirs)) is not None:
            yield (SetParameter(node.name, "bias", bias),)


def added_bias_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """A lost bias behind a layer, whose format has no place for it."""
    for ours, theirs in setting.paired:
        bias = _lost_bias(ours, theirs) if ours.op == theirs.op and len(theirs.nodes) == 1 else None
        if bias is not None and setting.in_editor.of(theirs.nodes[0]) is not None:
            tensor, numbers = theirs.outputs[0], _along_channels(bias, theirs)
            yield (Graft(tensor, (Operation("Add", (tensor,), {}, {"operand": numbers}),)),)


def _lost_bias(ours: Step, theirs: Step) -> Array | None:
    bias = ours.parameters.get("bias")
    return None if bias is None or "bias" in theirs.parameters or len(theirs.outputs) != 1 else bias.numpy()


def _given_or_not(ours: Step, theirs: Step, node: Node) -> Iterator[Proposal]:
    """What an operator is told by an input that may be left out, as a threshold, and only one side says."""
    if theirs.op in OPERATORS or not node.own or not ours.nodes[0].own:
        return
    for role in ours.parameters.keys() ^ theirs.parameters.keys():
        if role in theirs.parameters:
            yield (SetAttributes(node.name, {role: None}),)
        elif (array := ours.parameters[role].numpy()).ndim < 2 and array.dtype.kind in "iuf":
            values = tuple(array.reshape(-1).tolist())
            yield (SetAttributes(node.name, {role: values if array.ndim else values[0]}),)


def wanted_parameter(ours: Step, theirs: Step, node: Node, role: str) -> SetParameter | None:
    """The source's numbers in the shape of the target's; None where they're the same, or don't fit."""
    if role not in theirs.parameters:
        return None
    if compare_parameters(ours.parameters[role], theirs.parameters[role]) is None:
        return None
    values = ours.parameters[role].numpy()
    portion = portion_of(values, theirs.parameters[role].numpy())
    if portion is not None:
        values = portion.astype(values.dtype)
    return set_to(node, role, values)


def _along_channels(values: Array, step: Step) -> Array:
    """Numbers of channels, to be added to a layer's result."""
    rank = len(step.parameters["weight"].shape) if "weight" in step.parameters else 2
    return values if step.channels_last or step.op == "MatMul" else values.reshape(-1, *[1] * (rank - 2))


# Numbers of a recurrent layer, for the constants that hold them, in the order in which these hold gates.


# In an unrolled loop, where no step can be paired: give one turn the numbers that the other turns have.


def odd_parameter_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """The numbers that several operators of a piece share, for one alike that has others; the likest ones first.

    A loop's operators occur once for each turn, with the same numbers. Which of those that have one shape an operator
    should have isn't known where they're no more like the one's than like the other's.
    """
    for node, role, usual in odd_members(turns_of(setting.region.target.nodes)):
        edits = (set_to(setting.in_editor.of(node), role, item) for _, item in usual)
        yield from ((edit,) for edit in edits if edit is not None)


def recurrent_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """The source's numbers, wherever the target has them: in a loop's body, in steps one behind the other.

    Results tell in which order the target's gates are wrong, its constants where they stand: what holds the gates of
    the wrong form gets those of the right one. Where no form gives what the target computes, numbers differ.
    """
    found = recurrent_layer(setting.region.source.nodes)
    if found is None or len(setting.region.target.nodes) <= 1:
        return
    form = form_of(setting.region)
    sought, right = (found[1], found[1]) if form is None else (form.wrong, form.right)
    edits: list[SetParameter | Requantize] = []
    for item in carried_gates(sought, right, setting.region.target.nodes):
        place, values = setting.in_editor.of(item.node), item.right.astype(np.float32)
        held = None if place is None else place.parameters.get(item.role)
        if place is None or held is None or held.shape != values.shape:
            continue
        if compare_parameters(item.wanted, item.parameter) is not None:
            keeps = has_right_scales(values, item.parameter)
            edits.append((SetParameter if keeps else Requantize)(place.name, item.role, values))
    if edits:
        yield tuple(edits)

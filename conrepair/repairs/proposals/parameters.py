"""Give a parameter the source's numbers."""

from __future__ import annotations

from collections.abc import Iterator

from conrepair.editors.operation import Operation
from conrepair.graph.layer_graph import Array, Node
from conrepair.graph.operators import OPERATORS
from conrepair.localization.diagnosis.changed import portion_of
from conrepair.localization.diagnosis.parameters import compare_parameters
from conrepair.localization.diagnosis.steps import Step
from conrepair.localization.quantization import has_right_scales
from conrepair.repairs.edits import Graft, Requantize, SetAttributes, SetParameter
from conrepair.repairs.held import set_to
from conrepair.repairs.proposals.proposal import Proposal, ProposalSetting

__all__ = ["parameter_proposals", "wanted_parameter"]


def parameter_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """One differing parameter alone, then all of a layer's; a lost bias in its own place, else behind it."""
    for ours, theirs in setting.reading.pairs:
        if ours is None or theirs is None or ours.op != theirs.op:
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
        bias = ours.parameters.get("bias")
        if bias is not None and "bias" not in theirs.parameters and len(theirs.outputs) == 1:
            tensor, numbers = theirs.outputs[0], _along_channels(bias.numpy(), theirs)
            yield (SetParameter(node.name, "bias", bias.numpy()),)
            yield (Graft(tensor, (Operation("Add", (tensor,), {}, {"operand": numbers}),)),)


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

"""Give a layer the source's attributes, or its operator."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from conrepair.diagnosis.localization.faces.attributes import attribute_differences, is_same_operator
from conrepair.diagnosis.localization.faces.differences import layouts_of
from conrepair.diagnosis.localization.faces.region import Side
from conrepair.diagnosis.repairs.edits import SetAttributes, SetOperator, SwapInputs
from conrepair.diagnosis.repairs.proposals.proposal import Proposal, ProposalSetting
from conrepair.formats.editing.lowering_windows import pads_of_all_axes
from conrepair.ground.graph.layer_graph import Node

_MOST_PERMUTATIONS = 6
_ORDERED = {"Sub", "Div", "Pow", "Concat", "Stack", "MatMul"}


def attribute_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """All differing attributes of one layer."""
    layouts = layouts_of(setting.region)
    for ours, theirs in setting.paired:
        if not is_same_operator(ours, theirs):
            continue
        wanted = {item.name: item.wanted for item in attribute_differences(ours, theirs, layouts)}
        node = setting.in_editor.of(theirs.nodes[0])
        if wanted and node is not None:
            yield (SetAttributes(node.name, wanted),)
        padding = next((setting.in_editor.of(item) for item in theirs.nodes if item.op == "Pad"), None)
        pads = wanted.get("pads")
        if padding is not None and isinstance(pads, tuple):
            around = pads_of_all_axes([int(size) for size in pads], channels_last=theirs.channels_last)
            yield (SetAttributes(padding.name, {"pads": around}),)


def permutation_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """Another permutation of a layer that only permutes, also in front of the piece; those of the source first."""
    graph = setting.region.target.graph
    usual = [node.attributes.get("perm") for node in _permuting(setting.region.source)]
    for node in _permuting(setting.region.target):
        place, shape, given = (
            setting.in_editor.of(node),
            graph.tensors[node.inputs[0]].shape,
            node.attributes.get("perm"),
        )
        if place is None or shape is None or not isinstance(given, tuple):
            continue
        wanted = [shape[int(axis)] for axis in given]
        fitting = [
            perm
            for perm in itertools.permutations(range(len(shape)))
            if perm != given and [shape[axis] for axis in perm] == wanted
        ]
        fitting.sort(key=lambda perm: perm not in usual)
        yield from ((SetAttributes(place.name, {"perm": perm}),) for perm in fitting[:_MOST_PERMUTATIONS])


def _permuting(side: Side) -> list[Node]:
    """The layers of a side that only permute, and those that compute what it reads."""
    before = [side.graph.producers[name] for name in side.begins if name in side.graph.producers]
    return [node for node in (*side.nodes, *before) if node.op == "Transpose"]


def operator_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """The source's operator where the target has another one of as many operands."""
    for ours, theirs in setting.paired:
        if ours.op == theirs.op or len(theirs.nodes) > 1:
            continue
        if len(ours.nodes) == 1 and _operands(ours.nodes[0]) != _operands(theirs.nodes[0]):
            continue
        node = setting.in_editor.of(theirs.nodes[0])
        if node is not None and len(ours.nodes) == 1:
            right = ours.nodes[0]  # as it's written: steps call a ReLU a Clip
            yield (SetOperator(node.name, right.op, dict(right.attributes)),)
        elif node is not None and ours.op != "Function":
            yield (SetOperator(node.name, ours.op, dict(ours.attributes)),)


def _operands(node: Node) -> int:
    """How many tensors an operator reads that aren't weights, with one that's constant."""
    return len(node.inputs) + ("operand" in node.parameters)


def order_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """Two operands of one layer, exchanged."""
    for node in setting.region.target.nodes:
        read = [name for name in node.inputs if name]
        place = setting.in_editor.of(node)
        if place is None or node.op not in _ORDERED:
            continue
        if len(dict.fromkeys(read)) > 1:
            yield from (
                (SwapInputs(place.name, one, two),) for one in range(len(read)) for two in range(one + 1, len(read))
            )
        elif "operand" in node.parameters:
            yield (SetAttributes(place.name, {"constant_first": not node.attributes.get("constant_first")}),)

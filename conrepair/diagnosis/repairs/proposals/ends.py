"""Changes of what a model takes and gives: outputs that stand elsewhere, were lost, or have a class more."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator

from conrepair.diagnosis.localization.align.layout import Layout, layouts
from conrepair.diagnosis.localization.localize import Found
from conrepair.diagnosis.repairs.edits import (
    AddOutput,
    DropOutput,
    ExchangeInputs,
    ExchangeOutputs,
    Graft,
    MoveOutputs,
)
from conrepair.diagnosis.repairs.proposals.precision import float32_proposals
from conrepair.diagnosis.repairs.proposals.proposal import Proposal, RangeOf
from conrepair.diagnosis.repairs.transplant import KnownTensor, transplant
from conrepair.formats.editing.editor import Editor
from conrepair.formats.editing.operation import NotEditableError, Operation
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import LayerGraph


def end_proposals(
    found: Found, before: Found, editor: Editor, source: LayerGraph, range_of: RangeOf
) -> Iterator[Proposal]:
    """Proposals that are about no piece: the target's layers may all be right.

    Args:
        found: What is wrong by now.
        before: What was, of the target as it came.
        editor: Of that.
        source: The graph that is right.
        range_of: Gives the smallest and the largest value of a tensor of the source.
    """
    yield from float32_proposals(found.result.faults, before.alignment.pairs, editor.graph, source, range_of)
    yield from _of_other_sizes(found, editor)
    yield from _as_the_source(found, before, editor, source)
    yield from _extra(found, editor)
    yield from _turned(found, editor)
    outputs, inputs = editor.graph.outputs, editor.graph.inputs
    for kind, names in ((ExchangeOutputs, outputs), (MoveOutputs, outputs), (ExchangeInputs, inputs)):
        for one, two in itertools.combinations(range(len(names)), 2):
            yield (kind(one, two),)


def _of_other_sizes(found: Found, editor: Editor) -> Iterator[Proposal]:
    """Scores without their first class, as between 1000 classes and 1001 with a background; without their last."""
    placed = {piece.judged.cut.pair.target for piece in found.guilty}
    for fault in found.result.faults:
        name = fault.target_tensor
        if (
            fault.kind is not Kind.STRUCTURE
            or not fault.source_tensor
            or name in placed
            or name not in editor.graph.outputs
        ):
            continue
        shape = editor.graph.tensors[name].shape
        if shape is None or len(shape) < 2 or shape[-1] < 2:
            continue
        axis, classes = len(shape) - 1, shape[-1]
        for begin, end in ((1, classes), (0, classes - 1)):
            slicing = {"axes": (axis,), "starts": (begin,), "ends": (end,), "steps": (1,)}
            yield (Graft(name, (Operation("Slice", (name,), slicing),)),)


def _as_the_source(found: Found, before: Found, editor: Editor, source: LayerGraph) -> Iterator[Proposal]:
    """Lost outputs from what stands for them inside the target, as its own file calls it.

    Then outputs in the source's shape and order of axes: what is there turned, or all behind what stands for others.

    Args:
        found: What is wrong by now.
        before: What was, of the target as it came.
        editor: Of that.
        source: The graph that is right.
    """
    pairs, outputs = [*before.alignment.pairs, *found.alignment.pairs], editor.graph.outputs
    known = {
        pair.source: KnownTensor(pair.target, pair.layout) for pair in pairs if pair.target in editor.graph.tensors
    }
    for fault in found.result.faults:
        tensor, name = fault.source_tensor, fault.target_tensor
        if tensor not in source.outputs:
            continue
        place = min(source.outputs.index(tensor), len(outputs))
        inside = dict.fromkeys(pair.target for pair in reversed(pairs) if pair.source == tensor and not name)
        yield from ((AddOutput(one, place=place),) for one in inside if one in editor.graph.tensors.keys() - outputs)
        shape = source.tensors[tensor].shape
        if shape is None or fault.kind is not Kind.STRUCTURE or (name and name not in outputs):
            continue
        end = Layout(shape, shape, tuple(range(len(shape))), shape)
        behind = {one: stands for one, stands in known.items() if one != tensor}
        for nodes in ((), source.between(behind, [tensor])):
            with contextlib.suppress(NotEditableError):
                operations = transplant(nodes, source, behind if nodes else known, end, wanted=tensor)
                yield (Graft(name, operations) if name else AddOutput(tensor, operations, place),)


def _extra(found: Found, editor: Editor) -> Iterator[Proposal]:
    """Outputs that the source doesn't have, given no more."""
    for fault in found.result.faults:
        if not fault.source_tensor and fault.target_tensor in editor.graph.outputs:
            yield (DropOutput(editor.graph.outputs.index(fault.target_tensor)),)


def _turned(found: Found, editor: Editor) -> Iterator[Proposal]:
    """Inputs whose axes the target reads in another order than it's fed with."""
    known = {pair.target: pair.layout for pair in found.alignment.pairs}
    names = [fault.target_tensor for fault in found.result.faults if fault.at_input and fault.kind is Kind.INPUT]
    for name in names:
        layout = known.get(name)
        if layout is None or layout.is_plain:
            continue
        likely = [item for item in layouts(layout.source, layout.target) if item.axes[:1] == layout.axes[:1]]
        fed = next((item for item in likely if item.view == layout.view and not item.exchanges), None)
        if fed is not None and fed.axes != layout.axes:
            ones = len(layout.target) - len(layout.axes)  # in front, which a layout leaves out
            perm = (*range(ones), *(fed.axes.index(axis) + ones for axis in layout.axes))
            yield (Graft(name, (Operation("Transpose", (name,), {"perm": perm}),)),)

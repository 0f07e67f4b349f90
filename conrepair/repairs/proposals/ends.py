"""Changes of what a model takes and gives: outputs that stand elsewhere, were lost, or have a class more."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from conrepair.editors.editor import Editor
from conrepair.editors.operation import Operation
from conrepair.graph.kinds import Kind
from conrepair.localization.localize import Found
from conrepair.repairs.edits import AddOutput, DropOutput, ExchangeInputs, ExchangeOutputs, Graft, MoveOutputs
from conrepair.repairs.proposals.proposal import Proposal

__all__ = ["end_proposals"]


def end_proposals(found: Found, before: Found, editor: Editor) -> Iterator[Proposal]:
    """Proposals that are about no piece: the target's layers may all be right.

    Args:
        found: What is wrong by now.
        before: What was, of the target as it came.
        editor: Of that.
    """
    yield from _of_other_sizes(found, editor)
    yield from _lost(found, before, editor)
    yield from _extra(found, editor)
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


def _lost(found: Found, before: Found, editor: Editor) -> Iterator[Proposal]:
    """What stands for an output of the source inside the target, as its own file calls it."""
    known = [{pair.source: pair.target for pair in item.alignment.pairs} for item in (found, before)]
    for fault in found.result.faults:
        if fault.target_tensor:
            continue
        partners = dict.fromkeys(pairs.get(fault.source_tensor) for pairs in known)
        for tensor in partners:
            if tensor in editor.graph.tensors and tensor not in editor.graph.outputs:
                yield (AddOutput(str(tensor)),)


def _extra(found: Found, editor: Editor) -> Iterator[Proposal]:
    """Outputs that the source doesn't have, given no more."""
    for fault in found.result.faults:
        if not fault.source_tensor and fault.target_tensor in editor.graph.outputs:
            yield (DropOutput(editor.graph.outputs.index(fault.target_tensor)),)

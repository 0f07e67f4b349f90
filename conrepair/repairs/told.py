"""Which proposals fix what a localization has told, and which fix something beside it or behind it."""

from __future__ import annotations

from collections.abc import Sequence

from conrepair.editors.editor import Editor
from conrepair.localization.result import Localization
from conrepair.repairs.edits import Edit, SetRange, in_words
from conrepair.repairs.state import PARAMETER, Taken

__all__ = ["beside"]


def beside(taken: Sequence[Taken], before: Localization, editor: Editor) -> tuple[str, ...]:
    """Faults that only their repair has shown, in words: a piece with two of them is told by one.

    A proposal is of a fault that was told where it changes the layer that this names, or what the source computes in
    its piece. Of several in one piece one is that of its fault, and each other one has repaired another; so has one
    that fixes what was hidden by something in front of it. Ranges are of one calibration, wherever they're set.

    Args:
        taken: What fixes the target, in order.
        before: What was said of it.
        editor: Of the target as it came.
    """
    named = {layer for fault in before.faults for layer in fault.target_layers[:1]}
    named |= {layer for fault in before.faults for _, layer in fault.differences}
    known = {layer for fault in before.faults for layer in fault.target_layers}
    ends = {fault.source_tensor for fault in before.faults}
    told = [item for item in taken if not item.reach or _places(item, editor) & named]
    calibrated = any(map(_calibrates, told))
    pieces = {name for item in told for name in _piece(item)}
    found = []
    for item in taken:
        if any(item is other for other in told) or (calibrated and _calibrates(item)):
            continue
        if _piece(item) & pieces or not (_piece(item) & ends or _places(item, editor) & known):
            found.append("; ".join(map(in_words, item.edits)))
        pieces |= _piece(item)
    return tuple(found)


def _calibrates(item: Taken) -> bool:
    return bool(item.edits) and all(isinstance(edit, SetRange) for edit in item.edits)


def _piece(item: Taken) -> frozenset[str]:
    """What the source computes where a proposal fixes."""
    return frozenset(name for name in item.reach if not name.startswith(PARAMETER))


def _places(item: Taken, editor: Editor) -> set[str]:
    """What the file calls the layers that a proposal changes."""
    return set[str]().union(*(_names(edit, editor) for edit in item.edits))


def _names(edit: Edit, editor: Editor) -> frozenset[str]:
    name = str(getattr(edit, "node", "") or getattr(edit, "tensor", ""))
    node = next((item for item in editor.graph.nodes if item.name == name), None)
    if node is not None:
        return editor.names(node) | {node.name}
    return editor.tensor_names(name) | {name} if name in editor.graph.tensors else frozenset({name})

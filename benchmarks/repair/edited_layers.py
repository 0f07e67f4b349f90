"""Which layers the edits of a patch are about."""

from __future__ import annotations

from collections.abc import Sequence, Set

from benchmarks.faults.noting import noted
from conrepair.diagnosis.repairs.edits import (
    AddOutput,
    DropOutput,
    Edit,
    ExchangeInputs,
    ExchangeOutputs,
    Graft,
    SetRecipe,
    apply,
)
from conrepair.diagnosis.repairs.patch import Patch
from conrepair.formats.editing.editor import Editor
from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.models.model import Model
from conrepair.ground.graph.layer_graph import Node

__all__ = ["edited_layers"]


def edited_layers(patch: Patch, target: Model) -> list[list[str]]:
    """For each edit, the layers that it's about, as the target's file calls them.

    An edit of a node, or one that takes it out, is about that node. What is put in is about the layers on both sides;
    a recipe about none; exchanged outputs about what computes them, exchanged inputs about what reads them.

    Args:
        patch: Of a repair.
        target: The model that it's for.
    """
    editor = open_editor(target)
    touched = noted(editor)
    return [sorted(_place(edit, editor, touched)) for edit in patch.edits]


def _place(edit: Edit, editor: Editor, touched: Set[str]) -> frozenset[str]:
    nodes = editor.graph.nodes
    if isinstance(edit, AddOutput | DropOutput | ExchangeOutputs | ExchangeInputs):
        before = frozenset(touched)
        apply(edit, editor)
        return frozenset(touched) - before
    if isinstance(edit, SetRecipe):
        return frozenset()
    apply(edit, editor)  # what follows may be about a changed graph
    if isinstance(edit, Graft):
        chosen = [node for node in nodes if not edit.readers or node.name in edit.readers]
        around = [node for node in chosen if edit.tensor in node.inputs]
        return editor.tensor_names(edit.tensor) | _names(around, editor)
    return _names([node for node in nodes if node.name == getattr(edit, "node", None)], editor)


def _names(nodes: Sequence[Node], editor: Editor) -> frozenset[str]:
    return frozenset(name for node in nodes for name in editor.names(node))

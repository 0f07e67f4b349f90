"""Which layers a person would have to look at once an editor has changed a model."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from conrepair.formats.editing.editor import Editor
from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.models.model import Model
from conrepair.ground.graph.layer_graph import Node

__all__ = ["new_layers", "noted"]

_OF_NODES = ("set_parameter", "requantize", "set_attributes", "set_operator", "remove", "swap_inputs")
_OF_TENSORS = ("set_range", "graft", "add_output", "exchange_reads")
_OF_ENDS = ("drop_output", "exchange_outputs", "move_outputs", "exchange_inputs")


def noted(editor: Editor) -> set[str]:
    """Note what an editor changes from now on.

    Args:
        editor: Its methods are replaced.

    Returns:
        Names of changed layers, as the file calls them, and of the neighbours of those that are gone; it grows.
    """
    touched: set[str] = set()
    for name in (*_OF_NODES, *_OF_TENSORS, *_OF_ENDS):
        setattr(editor, name, _noting(editor, name, touched))
    return touched


def new_layers(editor: Editor, changed: Model) -> set[str]:
    """Layers that a changed file has and the one that an editor was opened for hasn't."""
    before, after = (
        {name for node in item.graph.nodes for name in item.names(node)} for item in (editor, open_editor(changed))
    )
    return after - before


def _noting(editor: Editor, name: str, touched: set[str]) -> Callable[..., None]:
    method = getattr(editor, name)
    signature = inspect.signature(method)

    def change(*arguments: Any, **named: Any) -> None:
        method(*arguments, **named)
        touched.update(_about(name, signature.bind(*arguments, **named).arguments, editor))

    return change


def _about(name: str, given: Mapping[str, Any], editor: Editor) -> set[str]:
    """The layers that a call of an editor's method is about."""
    graph = editor.graph
    nodes = list(given.get("readers", ()))
    tensors = [given["tensor"]] if "tensor" in given else []
    if name == "remove":
        return _around(given["node"], editor)
    if "node" in given:
        nodes.append(given["node"])
    elif name in _OF_ENDS:
        ends = graph.inputs if name == "exchange_inputs" else graph.outputs
        places = [ends[given[key]] for key in ("one", "two", "place") if key in given]
        if name == "exchange_inputs":
            nodes += [node for tensor in places for node in graph.consumers.get(tensor, ())]
        else:
            tensors += places
    found = {layer for node in nodes for layer in editor.names(node)}
    return found.union(*map(editor.tensor_names, tensors))


def _around(node: Node, editor: Editor) -> set[str]:
    """What stands around a node that is gone; the layer that it was a part of, where that stays."""
    graph = editor.graph
    if sum(item.layer == node.layer for item in graph.nodes) > 1:
        return set(editor.names(node))
    around = [graph.producers[name] for name in node.inputs if name in graph.producers]
    around += [reader for name in node.outputs for reader in graph.consumers.get(name, ())]
    around += [node] if not around or not {*graph.outputs}.isdisjoint(node.outputs) else []
    return {name for item in around for name in editor.names(item)}

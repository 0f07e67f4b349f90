"""What a fault is: where it can occur, and what it changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import onnx_ir

from conrepair.editors.editor import Editor
from conrepair.graph.kinds import Kind
from conrepair.graph.layer_graph import LayerGraph, Node

__all__ = ["Change", "Fault", "Native", "Place"]

Place = onnx_ir.Node | onnx_ir.Value
P = TypeVar("P", bound=Place)


@dataclass(frozen=True)
class Change:
    """What was done to a graph.

    Attributes:
        nodes: At fault: changed or inserted ones, or the neighbours of one that's gone.
        words: For a person.
    """

    nodes: tuple[onnx_ir.Node, ...]
    words: str


@dataclass(frozen=True)
class Native:
    """The same fault in formats that have an editor.

    Attributes:
        places: Nodes, or names of tensors; in the graph's order.
        change: Put it there and say what was done. What the format can't express is refused by the editor.
    """

    places: Callable[[LayerGraph], Sequence[Node | str]]
    change: Callable[[Editor, Node | str, np.random.Generator], str]


@dataclass(frozen=True)
class Fault(Generic[P]):
    """One way in which conversions go wrong.

    Attributes:
        name: In words, with hyphens; the module's.
        kind: What a diagnosis should call it.
        provenance: Where it was seen: threads ("project#number"), or a row of docs/measured/converter-faults.md.
        repair: What fixes it.
        places: Where it can be put into an ONNX graph, in the graph's order.
        change: Put it there, in place. The graph must still be valid; random choices come from the generator.
        native: The same in other formats, where it makes sense there.
    """

    name: str
    kind: Kind
    provenance: str
    repair: str
    places: Callable[[onnx_ir.Graph], Sequence[P]]
    change: Callable[[P, np.random.Generator], Change]
    native: Native | None = None

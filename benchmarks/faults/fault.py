"""What a fault is: where it can occur, and what it changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from conrepair.formats.editing.editor import Editor
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import LayerGraph, Node

__all__ = ["Fault", "Native"]


@dataclass(frozen=True)
class Native:
    """A fault as an editor puts it into a file of its own format.

    Attributes:
        places: Nodes, or names of tensors; in the graph's order.
        change: Put it there and say what was done. What the format can't express is refused by the editor.
    """

    places: Callable[[LayerGraph], Sequence[Node | str]]
    change: Callable[[Editor, Node | str, np.random.Generator], str]


@dataclass(frozen=True)
class Fault:
    """One way in which conversions go wrong.

    Attributes:
        name: In words, with hyphens; the module's.
        kind: What a diagnosis should call it.
        provenance: Where it was seen: threads ("project#number"), or a row of docs/measured/converter-faults.md.
        repair: What fixes it.
        native: Where it can be put, and how.
    """

    name: str
    kind: Kind
    provenance: str
    repair: str
    native: Native

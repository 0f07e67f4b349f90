"""The order of an fx graph's nodes: each behind those that it reads."""

from __future__ import annotations

import torch

from conrepair.editors.editor import NotEditableError

__all__ = ["put_in_order"]


def put_in_order(graph: torch.fx.Graph) -> None:
    """Move nodes behind those that they read, in place; what's in order stays as it is.

    Raises:
        NotEditableError: if nodes read one another in a circle.
    """
    waiting, done = list(graph.nodes), set[torch.fx.Node]()
    while waiting:
        node = next((item for item in waiting if done.issuperset(item.all_input_nodes)), None)
        if node is None:
            raise NotEditableError("what is put in would read what is computed from it")
        if node is not waiting[0]:
            waiting[0].prepend(node)
        waiting.remove(node)
        done.add(node)

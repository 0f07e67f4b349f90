"""Which nodes of a TensorFlow graph some tensors need, those of the functions that they call included."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from conrepair.ground.data.following import reached
from conrepair.ground.runtime.bounds import check_expansion

Place = tuple[str, str]
"""A node: the function that it's in ("" for the graph), and its name."""


class GraphCalls:
    """A graph with its library of functions.

    Args:
        graph: A GraphDef.
    """

    def __init__(self, graph: Any) -> None:
        self._graph = {node.name: node for node in graph.node}
        self._library = {item.signature.name: list(item.node_def) for item in graph.library.function}

    def check_size(self, path: Path) -> None:
        """Refuse functions that come to too many operators where they're called, as TensorFlow writes them out.

        Args:
            path: Of the file.

        Raises:
            ModelLoadError: if they do, or one calls itself.
        """
        parts = self._library | {"the graph": list(self._graph.values())}
        called = {name: Counter(_callees(nodes)) for name, nodes in parts.items()}
        check_expansion(path, {name: len(nodes) for name, nodes in parts.items()}, called)

    def nodes(self) -> dict[Place, Any]:
        """All nodes of the graph and its functions."""
        found = {("", name): node for name, node in self._graph.items()}
        for function, nodes in self._library.items():
            found |= {(function, node.name): node for node in nodes}
        return found

    def of_signatures(self, signatures: Iterable[Any]) -> list[str]:
        """The tensors that signatures take and give.

        Args:
            signatures: Of a SavedModel.
        """
        return [
            tensor.name for item in signatures for side in (item.inputs, item.outputs) for tensor in side.values()
        ]

    def reached(self, tensors: Iterable[str], functions: Iterable[str] = ()) -> dict[Place, Any]:
        """The nodes that some tensors need.

        Args:
            tensors: By name; nodes count as well, and what isn't there is left out.
            functions: That are called besides.
        """
        found = {("", name): self._graph[name] for name in self._needed(tensors)}
        called = reached([*functions, *_callees(found.values())], lambda name: _callees(self._library.get(name, ())))
        return found | {(name, node.name): node for name in called for node in self._library.get(name, ())}

    def _needed(self, tensors: Iterable[str]) -> Iterable[str]:
        def operators(tensors: Iterable[str]) -> Iterable[str]:
            return self._graph.keys() & {name.lstrip("^").partition(":")[0] for name in tensors}

        return reached(operators(tensors), lambda name: operators(self._graph[name].input))


def _callees(nodes: Iterable[Any]) -> Iterator[str]:
    """Functions that some nodes call, in whatever attribute they name them."""
    for node in nodes:
        yield node.op
        for value in node.attr.values():
            yield value.func.name
            yield from (function.name for function in value.list.func)
